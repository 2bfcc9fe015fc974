"""The runs of a study as processes, some at a time, gone on with where they were cut short.

Owns where each lies, ``OUT/NAME``, and its record, ``RECORDS/NAME.json``. Invariants: a run begins with the weights
of its seed's start, whoever made that; a run that fails ends no other; stopping a study ends its runs first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from cluster.errors import ManifestError, RunError
from cluster.recipe.override import override
from cluster.recipe.recipe import config_hash, load_recipe
from cluster.recorded_run import RecordedRun
from cluster.run_folder.durable import sha256_file
from cluster.run_folder.policy_folder import CHECKSUMS
from cluster.run_folder.summary import read_summary
from cluster.studies.records import RunRecord, read_record, write_record
from cluster.training_process import last_lines, start_training, training_log

BEFORE_RL = "run.evaluation.before_rl"
Say = Callable[[str], None]
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
        either: list[tuple[str, ...]] = [(), (f"{BEFORE_RL}=true",), (f"{BEFORE_RL}=false",)]
        return any(recipe == self.identity_with(*further, *one) for one in either)


@dataclass(frozen=True, slots=True)
class StartPolicy:
    """The policy that a seed's arms start from, and the SHA-256 of its files' checksums."""

    folder: Path
    digest: str


class StudyProcesses:
    """Runs as processes of the command line, some at a time, in the order in which they are asked for."""

    def __init__(self, pool: ThreadPoolExecutor, out: Path, records: Path, say: Say, only_read: bool) -> None:
        self._pool, self._out, self._records, self._say, self.only_read = pool, out, records, say, only_read
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
            self._say(f"process {process.pid} did not end within {_STOP_S} s and is killed")
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _start(self, run: StudyRun, same: Mapping[str, str]) -> StartPolicy | str:
        if same and not self.only_read and not (self._out / run.name).exists():
            other = next(iter(same.values()))
            self._say(f"{run.name}: is not in {self._out}; made anew, it has to come out as the start that {other} had")
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
            self._say(f"{run.name}: {'going on' if folder.exists() else 'begun'}")
            code = self._ended(replace(run, overrides=[*run.overrides, *further]), folder)
            if code:
                return f"exit code {code}; see {training_log(folder)}: {_last_words(folder)}"
        made = RecordedRun(folder)
        if not _is_of(made, run, started=bool(further)):
            return f"{folder}: is of a run with other settings; move it away to begin {run.name} anew"
        self._say(f"{run.name}: complete")
        return made

    def _told_of(self, run: StudyRun, made: _Made) -> _Made:
        """Return what came of a run; why nothing did is told at once."""
        if isinstance(made, str) and not self.only_read:
            self._say(f"{run.name}: {made}")
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
def study_processes(jobs: int, out: Path, records: Path, say: Say, *, only_read: bool) -> Iterator[StudyProcesses]:
    """Yield what starts runs; whatever ends the block ends them, cleanly, so that they can be gone on with."""
    with ThreadPoolExecutor(jobs, thread_name_prefix="study") as pool:
        made = StudyProcesses(pool, out, records, say, only_read)
        try:
            yield made
        except BaseException:
            made.stop()
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
