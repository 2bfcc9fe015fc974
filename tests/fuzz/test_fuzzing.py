"""A small share of ``benchmarks.fuzz``: inputs are read, or refused as documented; and the search finds faults."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from benchmarks import fuzzing
from benchmarks.fuzz import NAMES
from benchmarks.fuzz_targets import targets
from benchmarks.fuzzing import Target, draw_input, read_many, require

SHARES = {"actions": 2_000, "pages": 600, "recipes": 300, "tasks": 500, "judges": 500, "answers": 1_000, "report": 3,
          "shards": 200, "policy": 200}  # fmt: skip
TARGETS = targets()


def test_every_target_has_a_share() -> None:
    assert set(SHARES) == set(NAMES) == set(TARGETS)


@pytest.mark.parametrize("name", NAMES)
def test_no_input_does_more_than_be_refused(name: str, tmp_path: Path) -> None:
    outcome = read_many(TARGETS[name], range(SHARES[name]), tmp_path, seed=1)
    assert outcome.findings == []
    assert outcome.taken > 0
    assert outcome.taken + outcome.refused == outcome.inputs


@pytest.mark.parametrize("name", NAMES)
def test_an_input_is_named_by_target_seed_and_number(name: str) -> None:
    first, again, other = (repr(draw_input(TARGETS[name], seed, 5)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def _read(given: int, _: Path) -> None:
    if given == 1:
        raise ValueError("documented")
    if given == 2:
        raise KeyError("not documented")
    require(given != 3, "three is not taken")
    if given == 4:
        while True:
            time.process_time()


def test_faults_and_hangs_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "LIMIT_S", 0.05)
    given = iter(range(6))
    target = Target("made", lambda _: next(given), _read, (ValueError,))
    outcome = read_many(target, range(6), tmp_path)
    assert (outcome.inputs, outcome.taken, outcome.refused, outcome.found) == (6, 2, 1, 3)
    assert outcome.findings == [
        "2: KeyError: 'not documented'",
        "3: BrokenPromise: three is not taken",
        "4: not read within 0.05 s",
    ]


def test_inputs_differ() -> None:
    rng = random.Random(0)
    assert len({TARGETS["actions"].make(rng) for _ in range(200)}) > 150
