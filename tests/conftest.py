"""What holds for every test: a thread a process, fair shares of the cores, nothing left in processes or environment."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.e2e.processes import left_after

# How long an example takes says how busy the machine is, not whether the code is right; and the same code is judged by
# the same examples each time: looking for new ones is what benchmarks/fuzz.py is for.
settings.register_profile("waymark", deadline=None, derandomize=True)
settings.load_profile("waymark")

os.environ["OMP_NUM_THREADS"] = "1"
# Ray's workers are nice to others by default: beside two test processes that compute, they would hardly run at all.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - it is spelled so
# Whichever test imports torch's compiler first would leave it.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(tempfile.gettempdir(), "waymark-tests-inductor"))
os.environ["WAYMARK_TEST_SUITE"] = uuid.uuid4().hex

pytest_plugins = ["tests.browser_fixtures"]

LONGEST = (
    "tests/e2e/test_train.py", "tests/policy/test_vllm_backend.py", "tests/e2e/test_submit.py",
    "tests/policy/test_vllm_publication.py", "tests/e2e/test_eval.py",
)  # fmt: skip
WAITING = ("tests/environments/", "tests/faults/", "tests/hostile/", "tests/rollout_workers/")
"""Folders whose tests wait for browsers and processes more than they compute."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest files begin early and apart, and files that wait lie evenly among those that compute.

    So no long file is left for the end, and processes that run side by side neither all compute nor all wait.
    """
    files = list(dict.fromkeys(_file(item) for item in items))
    places = {file: 0.12 * i for i, file in enumerate(LONGEST)}
    for waits in (True, False):
        kind = [file for file in files if file.startswith(WAITING) is waits and file not in LONGEST]
        places |= {file: (i + 0.5) / len(kind) for i, file in enumerate(kind)}
    items.sort(key=lambda item: (places[_file(item)], _file(item)))


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


@pytest.fixture(scope="session", autouse=True)
def _no_process_outlives_the_suite() -> Iterator[None]:
    yield
    left = left_after("WAYMARK_TEST_SUITE", os.environ["WAYMARK_TEST_SUITE"], seconds=20)
    assert not left, "processes that the suite started were still there after it, and were killed"


@pytest.fixture(autouse=True)
def _no_test_leaves_environment_variables() -> Iterator[None]:
    """Which tests share a process, and in what order, is luck: what one leaves behind fails another, now and then."""
    before = dict(os.environ)
    yield
    now, after = "PYTEST_CURRENT_TEST", dict(os.environ)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} - {now}
    for name in changed:
        os.environ.pop(name, None)
    os.environ.update({name: before[name] for name in changed & before.keys()})
    assert not changed, f"environment variables that this test left changed (put back now): {sorted(changed)}"
