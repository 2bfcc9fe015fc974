# Waymark: `make demo` sets up what it needs and trains; `make test` sets up what it needs and tests.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.waymark-ready
RECIPE ?= cluster/recipes/laptop.yaml
OUT    ?= runs/laptop

# One thread per process: oversubscribed OpenMP makes small torch loops 20-60 times slower.
export OMP_NUM_THREADS := 1

.PHONY: setup demo test test-faults lint bench docs clean

setup: $(READY)

# torch comes first and pinned: an open range would let pip pull several GB of CUDA packages on a CPU machine.
# miniwob comes last and alone: only its page files are used, and what it depends on clashes with Ray (docs/decisions/0040).
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps miniwob
	$(BIN)/python -m environments.browser.chromium --ensure
	touch $@

demo: setup
	$(BIN)/waymark train $(RECIPE) --out $(OUT)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src:. $(BIN)/lint-imports

# Three at a time on two cores, each file by one of them: most tests wait for browsers and processes to start. The files
# stay in order, or those with few long tests would come last, one after another. The longest tests of faults are left
# to test-faults, which runs the whole recovery matrix.
test: lint
	$(BIN)/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder -m "not lengthy"

test-faults: setup
	$(BIN)/python -m pytest -q tests/faults

bench: setup
	$(BIN)/python -m benchmarks

docs: setup
	$(BIN)/python -m cluster.reference

clean:
	rm -rf build dist *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
