"""``waymark study``: the runs of a study, in order, several side by side, gone on with where they were cut short.

Owns which runs a study has and where each lies: ``OUT/start/seed-S``, ``OUT/grid/ARM/POINT``, ``OUT/arms/ARM/seed-S``,
and its record, ``RECORDS/grid/ARM/POINT.json`` or ``RECORDS/arms/ARM/seed-S.json``. Invariants: what a study predicts
is written down before its first run and may not change after; a run that has a record is not run again, wherever it
was made; a run that fails ends no other; the test splits are not looked at before every choice is made.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from analysis.predictions import Prediction
from cluster.errors import ManifestError, RecipeError, RunError, RunStopped
from cluster.recipe.override import override
from cluster.recipe.recipe import config_hash, load_recipe
from cluster.recorded_run import RecordedRun
from cluster.run_folder.durable import sha256_file, write_atomic
from cluster.run_folder.policy_folder import CHECKSUMS
from cluster.run_folder.summary import read_summary
from cluster.studies.design import StudyFile
from cluster.studies.records import RunRecord, read_record, write_record
from cluster.training_process import last_lines, start_training, training_log
from records.durable import read_text

REGISTERED = "registered.json"
BEFORE_RL = "run.evaluation.before_rl"
Told = Callable[[str], None]
_STOP_S = 120.0
"""Fixed: longest wait for a run that was asked to stop; it ends what it does and writes down where it is."""
_LOOK_S = 0.2
"""Fixed: how often it is looked whether it has."""
_Made = TypeVar("_Made", bound="StartPolicy | RunRecord | str")


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One run: its name within the study, which is also its folder, its seed, its recipe and its overrides."""

    name: str
    seed: int
    recipe: Path
    overrides: list[str]

    @property
    def identity(self) -> str:
        """SHA-256 of all that its result depends on but the weights that it starts from."""
        return self.identity_with()

    def identity_with(self, *further: str) -> str:
        """Return ``identity`` under further overrides."""
        return config_hash(load_recipe(self.recipe, [*self.overrides, *further]))

    def is_of(self, recipe: str, *further: str) -> bool:
        """Whether a run of ``recipe`` is this one, under further overrides.

        Which arm tells what the start does changes as arms are added, and makes no other run.
        """
        told: list[tuple[str, ...]] = [(), (f"{BEFORE_RL}=true",), (f"{BEFORE_RL}=false",)]
        return any(recipe == self.identity_with(*further, *one) for one in told)


@dataclass(frozen=True, slots=True)
class StartPolicy:
    """The policy that a seed's arms start from, and the SHA-256 of its files' checksums."""

    folder: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Tried:
    """Settings of the grid, with success and the share of milestones reached on its split (0 without milestones)."""

    settings: dict[str, Any]
    success: float
    milestones: float


@dataclass(slots=True)
class StudyRuns:
    """The records of a study's runs: of each arm by seed, the settings that the grid chose, and what failed and why."""

    arms: dict[str, dict[int, RunRecord]] = field(default_factory=dict)
    chosen: dict[str, dict[str, Any]] = field(default_factory=dict)
    tried: dict[str, list[Tried]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def register(study: StudyFile, out: Path, records: Path) -> dict[str, Any]:
    """Write down beside the records what the study predicts, where that is not done, and return it with its date.

    Raises:
        RecipeError: the study of these records predicts something else, or has another name.
        ManifestError: runs are there and what they were to show is not, or cannot be read.
    """
    file = records / REGISTERED
    design = study.design
    sha256 = hashlib.sha256(study.content).hexdigest()
    groups = {one.group: design.groups[one.group] for one in design.predictions if one.group}
    if file.exists():
        found = _registered(file)
        said = (found["name"], found["predictions"], found.get("groups", groups))
        if said != (design.name, list(design.predictions), groups):
            raise RecipeError(
                f"{records}: has records of study {found['name']!r}, registered {found['when']}, which predicts "
                "otherwise; predictions are not changed after the runs began. Choose another --out, or other "
                "--records, for another study"
            )
        return {**found, "changed_since": found["sha256"] != sha256}
    if began := next((place for root in (records, out) for place in _began(root)), None):
        raise ManifestError(
            f"{began}: is of runs whose predictions are not in {file}; restore that file, name the --records that have "
            "it, or choose another --out"
        )
    noted = {
        "name": design.name, "predictions": list(design.predictions), "groups": groups,
        "when": datetime.now(UTC).isoformat(timespec="seconds"), "sha256": sha256,
    }  # fmt: skip
    records.mkdir(parents=True, exist_ok=True)
    written = {**noted, "predictions": [asdict(one) for one in design.predictions]}
    write_atomic(file, json.dumps(written, indent=1, ensure_ascii=False) + "\n")
    return {**noted, "changed_since": False}


def _began(root: Path) -> Iterator[Path]:
    """Yield what runs of arms, or of the grid, left below a study's folder or its records."""
    return (place for kind in ("arms", "grid") for place in sorted((root / kind).glob("*")))


def _registered(file: Path) -> dict[str, Any]:
    """Return what was written down, by whatever version; raise ``ManifestError`` where that is not it."""
    try:
        found = json.loads(read_text(file))
        told = {name: found[name] for name in ("name", "when", "sha256", *(["groups"] if "groups" in found else []))}
        return {**told, "predictions": _predictions(found["predictions"])}
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ManifestError(
            f"{file}: is not what a study predicted ({type(error).__name__}: {error}); restore it, from version "
            "control or a copy: what was predicted is not written down anew"
        ) from error


def _predictions(registered: Sequence[Mapping[str, Any]]) -> list[Prediction] | None:
    """Return the predictions that were written down; None where they are none that this version knows."""
    try:
        return [Prediction(**one) for one in registered]
    except (TypeError, ValueError):
        return None


def run_study(
    study: StudyFile, out: Path, records: Path, jobs: int, told: Told, *, only_read: bool = False
) -> StudyRuns:
    """Run what has no record yet, ``jobs`` at a time, and return all records; with ``only_read`` start nothing.

    Raises:
        RunStopped: not one start policy could be made, or it was stopped by a signal; the same command goes on.
        ManifestError: a record cannot be read, or is of a run with other settings.
    """
    design, runs = study.design, StudyRuns()
    with _children(jobs, out, records, told, only_read) as children:
        _choose(study, children, runs)
        asked = {
            f"arms/{arm}/seed-{seed}": (arm, seed)
            for arm in design.arms
            for seed in design.seeds_of(arm)
            if arm in runs.chosen or design.grid is None
        }
        found = _played(study, children, runs, [
            StudyRun(name, seed, study.recipe, study.settings_of(arm, seed, runs.chosen.get(arm, {}), design.splits))
            for name, (arm, seed) in asked.items()
        ])  # fmt: skip
    for name, record in found.items():
        arm, seed = asked[name]
        runs.arms.setdefault(arm, {})[seed] = record
    return runs


def _choose(study: StudyFile, children: _Children, runs: StudyRuns) -> None:
    """Try the grid for every arm, and note what is best on its split: by success, then by milestones reached.

    An arm waits until all of its grid is complete; of points that are alike the first counts.
    """
    grid = study.design.grid
    if grid is None:
        return
    points = dict(enumerate(grid.points()))
    asked = {f"grid/{arm}/{number}": (arm, number) for arm in study.design.tries_grid for number in points}
    found = _played(study, children, runs, [
        StudyRun(name, grid.seed, study.recipe, study.settings_of(arm, grid.seed, points[number], [grid.split]))
        for name, (arm, number) in asked.items()
    ])  # fmt: skip
    for name, (arm, number) in asked.items():
        if (record := found.get(name)) is None:
            continue
        success = fmean(record.outcomes_of(record.phases, grid.split).values())
        reached = record.milestones_of(record.phases, grid.split).values()
        tried = Tried(dict(points[number]), success, fmean(reached) if reached else 0.0)
        runs.tried.setdefault(arm, []).append(tried)
    for arm, of_arm in runs.tried.items():
        if len(of_arm) == len(points):
            runs.chosen[arm] = max(of_arm, key=lambda one: (one.success, one.milestones)).settings
    likes = {name: arm.like for name, arm in study.design.arms.items() if arm.like in runs.chosen}
    runs.chosen |= {name: runs.chosen[like] for name, like in likes.items()}
    waiting = {name: arm.like or name for name, arm in study.design.arms.items() if name not in runs.chosen}
    runs.failed |= {f"arms/{name}": f"the grid of {tries} is not complete" for name, tries in waiting.items()}


def _played(study: StudyFile, children: _Children, runs: StudyRuns, asked: Sequence[StudyRun]) -> dict[str, RunRecord]:
    """Return the records of these runs, seed by seed; what has none is noted in ``runs.failed``.

    A seed's start is made where one of its runs is missing, while those of the seed before it are trained.
    """
    found = {run.name: record for run in asked if (record := children.recorded(run)) is not None}
    missing = [run for run in asked if run.name not in found]
    seeds = sorted({run.seed for run in missing})
    starts: dict[int, Future[StartPolicy | str] | None] = {}
    begun: dict[str, Future[RunRecord | str]] = {}
    same = {
        seed: {found[run.name].start: run.name for run in asked if run.seed == seed and run.name in found}
        for seed in seeds
    }
    for number, seed in enumerate(seeds):
        for near in seeds[number : number + 2]:
            if near not in starts:
                start = None if study.design.start is None else children.start(_start_run(study, near), same[near])
                starts[near] = start
        begun |= {run.name: children.arm(run, starts[seed], same[seed]) for run in missing if run.seed == seed}
    ended = {seed: made.result() for seed, made in starts.items() if made is not None}
    runs.failed |= {f"start/seed-{seed}": made for seed, made in ended.items() if isinstance(made, str)}
    if ended and not found and not children.only_read and all(isinstance(made, str) for made in ended.values()):
        raise RunStopped(f"no start policy could be made: {next(iter(ended.values()))}")
    results = {name: future.result() for name, future in begun.items()}
    runs.failed |= {name: said for name, said in results.items() if isinstance(said, str)}
    return found | {name: record for name, record in results.items() if isinstance(record, RunRecord)}


def _start_run(study: StudyFile, seed: int) -> StudyRun:
    assert study.design.start is not None
    return StudyRun(f"start/seed-{seed}", seed, study.folder / study.design.start.recipe, study.start_settings(seed))


class _Children:
    """Runs as child processes of the command line, some at a time, in the order in which they are asked for."""

    def __init__(self, pool: ThreadPoolExecutor, out: Path, records: Path, told: Told, only_read: bool) -> None:
        self._pool, self._out, self._records, self._told, self.only_read = pool, out, records, told, only_read
        self._lock = threading.Lock()
        self._alive: set[subprocess.Popen[bytes]] = set()
        self._stopping = False

    def recorded(self, run: StudyRun) -> RunRecord | None:
        """Return the record of a run, None where there is none."""
        file = self._file(run)
        record = read_record(file)
        if record is not None and not run.is_of(record.recipe):
            raise ManifestError(
                f"{file}: is of a run with other settings than {run.name} has now; choose another --out and other "
                f"--records, or remove it and {self._out / run.name}"
            )
        return record

    def start(self, run: StudyRun, same: Mapping[str, str]) -> Future[StartPolicy | str]:
        """Make the policy that a seed's arms start from; ``same`` names recorded runs by the start that they had."""
        return self._pool.submit(self._start, run, same)

    def arm(
        self, run: StudyRun, start: Future[StartPolicy | str] | None, same: Mapping[str, str]
    ) -> Future[RunRecord | str]:
        """Train from what ``start`` makes; ``same`` names recorded runs of the seed by the start that they had."""
        return self._pool.submit(self._arm, run, start, same)

    def stop(self) -> None:
        """Ask all that runs to stop, and start nothing more."""
        with self._lock:
            self._stopping = True
            asked = set(self._alive)
            for process in asked:
                process.terminate()
        until = time.monotonic() + _STOP_S
        while asked & self._alive and time.monotonic() < until:
            time.sleep(_LOOK_S)
        for process in asked & self._alive:  # it goes on from its folder, as a killed run does
            self._told(f"process {process.pid} did not end within {_STOP_S} s and is killed")
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _start(self, run: StudyRun, same: Mapping[str, str]) -> StartPolicy | str:
        if same and not self.only_read and not (self._out / run.name).exists():
            other = next(iter(same.values()))
            self._told(
                f"{run.name}: is not in {self._out}; made anew, it has to come out as the start that {other} had"
            )
        return self._told_of(run, self._made_start(run))

    def _made_start(self, run: StudyRun) -> StartPolicy | str:
        with _told_as_reason() as failed:
            made = self._complete(run, ())
            if isinstance(made, str):
                return made
            folder = made.folders.trained.resolve()
            return StartPolicy(folder, sha256_file(folder / CHECKSUMS))
        return failed.reason

    def _arm(self, run: StudyRun, making: Future[StartPolicy | str] | None, same: Mapping[str, str]) -> RunRecord | str:
        start = None if making is None else making.result()
        if isinstance(start, str):
            return f"its start was not made: {start}"
        return self._told_of(run, self._made_arm(run, start, same))

    def _made_arm(self, run: StudyRun, start: StartPolicy | None, same: Mapping[str, str]) -> RunRecord | str:
        digest = "" if start is None else start.digest
        if other := next((name for had, name in same.items() if had != digest), None):
            return (
                f"its start has other weights than {other} had, as those are that another processor trained; bring "
                f"start/seed-{run.seed} from where {other} was run, or remove the records of seed {run.seed} to begin "
                "it anew"
            )
        with _told_as_reason() as failed:
            made = self._complete(run, () if start is None else (checkpoint(start.folder),))
            if isinstance(made, str):
                return made
            if start is not None and sha256_file(made.folders.policy / CHECKSUMS) != digest:
                return f"{made.out}: began from other weights than its start has now; move it away to begin it anew"
            record = RunRecord.of(made, run.identity, digest)
            if made.phases not in record.outcomes:
                return f"{made.out}: nothing of its last evaluation has a verdict; move it away to play it again"
            write_record(self._file(run), record)
            return record
        return failed.reason

    def _complete(self, run: StudyRun, further: Sequence[str]) -> RecordedRun | str:
        """Return a run's folder, complete, or why it is not."""
        folder = self._out / run.name
        if not _complete(folder):
            if self.only_read:
                return "not complete"
            self._told(f"{run.name}: {'going on' if folder.exists() else 'begun'}")
            code = self._ended(replace(run, overrides=[*run.overrides, *further]), folder)
            if code:
                return f"exit code {code}; see {training_log(folder)}: {_last_words(folder)}"
        made = RecordedRun(folder)
        if not _is_of(made, run, started=bool(further)):
            return f"{folder}: is of a run with other settings; move it away to begin {run.name} anew"
        self._told(f"{run.name}: complete")
        return made

    def _told_of(self, run: StudyRun, made: _Made) -> _Made:
        """Return what came of a run; why nothing did is told at once."""
        if isinstance(made, str) and not self.only_read:
            self._told(f"{run.name}: {made}")
        return made

    def _file(self, run: StudyRun) -> Path:
        return self._records / f"{run.name}.json"

    def _ended(self, run: StudyRun, folder: Path) -> int:
        with self._lock:
            if self._stopping:
                return 130
            environment = {"OMP_NUM_THREADS": "1", **os.environ}
            process = start_training(run.recipe, folder, run.overrides, environment, own_session=True)
            self._alive.add(process)
        try:
            return process.wait()
        finally:
            with self._lock:
                self._alive.discard(process)


@contextmanager
def _children(jobs: int, out: Path, records: Path, told: Told, only_read: bool) -> Iterator[_Children]:
    """Yield what starts runs; whatever ends the block ends them, cleanly, so that they can be gone on with."""
    with ThreadPoolExecutor(jobs, thread_name_prefix="study") as pool:
        children = _Children(pool, out, records, told, only_read)
        try:
            yield children
        except BaseException:
            children.stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def checkpoint(folder: Path | str) -> str:
    """Return the override by which a run starts from a policy folder."""
    return override("warm_start.checkpoint", str(folder))


def _is_of(made: RecordedRun, run: StudyRun, *, started: bool) -> bool:
    """Whether a folder holds this run; one that was ``started`` from another's policy names the folder of that."""
    start = (checkpoint(made.recipe.warm_start.checkpoint),) if started else ()
    return run.is_of(config_hash(made.recipe), *start)


@dataclass(slots=True)
class _Failed:
    reason: str = ""


@contextmanager
def _told_as_reason() -> Iterator[_Failed]:
    """Let what is wrong with one run be its reason: it ends no other."""
    failed = _Failed()
    try:
        yield failed
    except (RunError, LookupError, OSError, ValueError) as error:
        failed.reason = f"{type(error).__name__}: {error}"


def _complete(folder: Path) -> bool:
    try:
        return bool(read_summary(folder)["complete"]) and (folder / "report.html").is_file()
    except ManifestError:
        return False


def _last_words(folder: Path) -> str:
    lines = last_lines(folder, 1)
    return lines[0][-300:] if lines else "it said nothing"
