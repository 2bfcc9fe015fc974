"""``waymark study``: the runs of a study, in order, several side by side, gone on with where they were cut short.

Owns which runs a study has and where each lies: ``OUT/start/seed-S``, ``OUT/grid/ARM/POINT``, ``OUT/arms/ARM/seed-S``.
Invariants: what a study predicts is written down before its first run and may not change after; a run that is complete
is not run again; a run that fails ends no other; the test splits are not looked at before every choice is made.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster.errors import ManifestError, RecipeError, RunStopped
from cluster.finished_run import FinishedRun
from cluster.run_folder.durable import write_atomic
from cluster.run_folder.summary import read_summary
from cluster.study_design import StudyFile
from cluster.training_process import last_lines, start_training, training_log

REGISTERED = "registered.json"
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One run: its name within the study, which is also its folder, its recipe and its overrides."""

    name: str
    recipe: Path
    overrides: list[str]


@dataclass(slots=True)
class StudyRuns:
    """The finished runs of a study: of each arm by seed, the settings that the grid chose, and what failed and why."""

    arms: dict[str, dict[int, FinishedRun]] = field(default_factory=dict)
    chosen: dict[str, dict[str, Any]] = field(default_factory=dict)
    tried: dict[str, list[tuple[dict[str, Any], float]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def register(study: StudyFile, out: Path) -> dict[str, Any]:
    """Write down what the study predicts, where that is not done, and return it with its date.

    Raises:
        RecipeError: the folder's study predicts something else, or has another name.
    """
    file = out / REGISTERED
    mine = {"name": study.design.name, "predictions": [asdict(one) for one in study.design.predictions]}
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if any(found.get(key) != value for key, value in mine.items()):
            raise RecipeError(
                f"{out}: is the folder of study {found.get('name')!r}, registered {found.get('when')}, which predicts "
                "otherwise; predictions are not changed after the runs began. Choose another --out for another study"
            )
        return {**found, "changed_since": found["sha256"] != hashlib.sha256(study.content).hexdigest()}
    when = datetime.now(UTC).isoformat(timespec="seconds")
    noted = {**mine, "when": when, "sha256": hashlib.sha256(study.content).hexdigest()}
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(file, json.dumps(noted, indent=1, ensure_ascii=False) + "\n")
    return {**noted, "changed_since": False}


def run_study(study: StudyFile, out: Path, jobs: int, told: Told, *, only_read: bool = False) -> StudyRuns:
    """Run what is missing, ``jobs`` at a time, and return all that is complete; with ``only_read`` start nothing.

    Raises:
        RunStopped: not one start policy could be made, or it was stopped by a signal; the same command goes on.
    """
    design, runs = study.design, StudyRuns()
    with _children(jobs, out, told, only_read) as children:
        starts = _starts(study, out, children, runs)
        if design.start is not None and not starts:
            raise RunStopped(f"no start policy could be made: {next(iter(runs.failed.values()))}")
        _choose(study, out, children, runs, starts)
        asked = {
            f"arms/{arm}/seed-{seed}": (arm, seed)
            for arm in design.arms
            for seed in design.seeds_of(arm)
            if (arm in runs.chosen or design.grid is None) and (design.start is None or seed in starts)
        }
        found = children.train([
            StudyRun(
                name,
                study.recipe,
                study.settings_of(arm, seed, runs.chosen.get(arm, {}), design.splits, starts.get(seed)),
            )
            for name, (arm, seed) in asked.items()
        ])  # fmt: skip
    for name, (arm, seed) in asked.items():
        if isinstance(run := found[name], FinishedRun):
            runs.arms.setdefault(arm, {})[seed] = run
        else:
            runs.failed[name] = run
    return runs


def _starts(study: StudyFile, out: Path, children: _Children, runs: StudyRuns) -> dict[int, Path]:
    """Return the start policies by seed, empty where arms bring their own."""
    design = study.design
    if design.start is None:
        return {}
    seeds = sorted(
        {seed for arm in design.arms for seed in design.seeds_of(arm)} | ({design.grid.seed} if design.grid else set())
    )
    names = {seed: f"start/seed-{seed}" for seed in seeds}
    recipe = study.folder / design.start.recipe
    found = children.train([StudyRun(name, recipe, study.start_settings(seed)) for seed, name in names.items()])
    runs.failed |= {name: said for name, said in found.items() if isinstance(said, str)}
    return {
        seed: run.folders.trained.resolve()
        for seed, name in names.items()
        if isinstance(run := found[name], FinishedRun)
    }


def _choose(study: StudyFile, out: Path, children: _Children, runs: StudyRuns, starts: Mapping[int, Path]) -> None:
    """Try the grid for every arm, and note what is best on its split."""
    grid = study.design.grid
    if grid is None:
        return
    if study.design.start is not None and grid.seed not in starts:
        return
    points = dict(enumerate(grid.points()))
    names = {f"grid/{arm}/{number}": (arm, number) for arm in study.design.arms for number in points}
    start, splits = starts.get(grid.seed), [grid.split]
    found = children.train([
        StudyRun(name, study.recipe, study.settings_of(arm, grid.seed, points[number], splits, start))
        for name, (arm, number) in names.items()
    ])  # fmt: skip
    for name, (arm, number) in names.items():
        run = found[name]
        if isinstance(run, str):
            runs.failed[name] = run
            continue
        outcomes = list(run.outcomes(run.phases, grid.split).values())
        runs.tried.setdefault(arm, []).append((dict(points[number]), sum(outcomes) / len(outcomes)))
    for arm, tried in runs.tried.items():
        runs.chosen[arm] = max(tried, key=lambda one: one[1])[0]


class _Children:
    """Runs as child processes of the command line, some at a time."""

    def __init__(self, pool: ThreadPoolExecutor, out: Path, told: Told, only_read: bool) -> None:
        self._pool, self._out, self._told, self._only_read = pool, out, told, only_read
        self._lock = threading.Lock()
        self._alive: set[subprocess.Popen[bytes]] = set()
        self._stopping = False

    def train(self, runs: Sequence[StudyRun]) -> dict[str, FinishedRun | str]:
        """Return each run by its name, or why there is none."""
        return dict(zip((run.name for run in runs), self._pool.map(self._one, runs), strict=True))

    def stop(self) -> None:
        """Ask all that runs to stop, and start nothing more."""
        with self._lock:
            self._stopping = True
            for process in self._alive:
                process.terminate()

    def _one(self, run: StudyRun) -> FinishedRun | str:
        folder = self._out / run.name
        if not _complete(folder):
            if self._only_read:
                return "not complete"
            self._told(f"{run.name}: {'going on' if folder.exists() else 'begun'}")
            code = self._ended(run, folder)
            if code:
                said = _last_words(folder)
                self._told(f"{run.name}: exit code {code}: {said}")
                return f"exit code {code}; see {training_log(folder)}: {said}"
        self._told(f"{run.name}: complete")
        return FinishedRun(folder)

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
def _children(jobs: int, out: Path, told: Told, only_read: bool) -> Iterator[_Children]:
    """Yield what starts runs; whatever ends the block ends them, cleanly, so that they can be gone on with."""
    with ThreadPoolExecutor(jobs, thread_name_prefix="study") as pool:
        children = _Children(pool, out, told, only_read)
        try:
            yield children
        except BaseException:
            children.stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _complete(folder: Path) -> bool:
    try:
        return bool(read_summary(folder)["complete"]) and (folder / "report.html").is_file()
    except ManifestError:
        return False


def _last_words(folder: Path) -> str:
    lines = last_lines(folder, 1)
    return lines[0][-300:] if lines else "it said nothing"
