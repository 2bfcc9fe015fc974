"""Does a run survive anything, and does it learn as well? A fault every few seconds, drawn from the recovery matrix.

Trains one recipe undisturbed, and once more while processes of the run are killed and frozen; whenever that ends the
command, it is started again as a person would. Prints faults by kind, the time until the run had made progress again,
and attempts lost. Needs ``/proc`` (Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis.intervals import wilson
from benchmarks.process_tree import descendants, living, with_variable
from benchmarks.recording import Recording, met, option_parser, percent
from benchmarks.runs import FOLDER, LAPTOP, RecordedRun, RunFailed, start_training, train
from cluster.errors import ExitCode
from cluster.run_folder.ledger import FOLDER as LEDGER
from cluster.run_folder.ledger import Found
from environments.browser.owned_processes import process_mark
from replay.buffer import ReplayBuffer
from rollout_workers.leases import Event

NAME = "chaos"
_TAG = "WAYMARK_BENCHMARK_RUN"
_POLL_S, _GRACE_S = 0.5, 30.0
_RESTARTS_IN_A_ROW = 5
"""Ends by itself without progress after which a run counts as one that cannot go on."""
FAULTS: dict[str, tuple[str, signal.Signals]] = {
    "tab crash": ("--type=renderer", signal.SIGKILL),
    "Chromium killed": ("--waymark-browser=", signal.SIGKILL),
    "worker killed": ("ray::RolloutWorker", signal.SIGKILL),
    "worker frozen": ("ray::RolloutWorker", signal.SIGSTOP),
    "sites killed": ("sites.server", signal.SIGKILL),
    "sites hanging": ("sites.server", signal.SIGSTOP),
    "policy server killed": ("ray::PolicyServer", signal.SIGKILL),
    "policy server frozen": ("ray::PolicyServer", signal.SIGSTOP),
    "learner killed": ("ray::LearnerActor", signal.SIGKILL),
    "controller killed": ("", signal.SIGKILL),
    "Ray head killed": ("gcs_server", signal.SIGKILL),
}
"""What is done to which process: a part of its command line ("" is the command itself) and a signal."""


@dataclass
class Blow:
    """One fault, what the run had done until then, and the seconds until it had done more; None if it never did."""

    fault: str
    at_s: float
    progress: int
    recovered_s: float | None = None
    attempts_lost: int = 0


@dataclass
class Chaos:
    """A run that is hit every ``every_s`` seconds for ``lasts_s`` seconds, and started again whenever it ends."""

    recipe: Path
    out: Path
    overrides: Sequence[str]
    faults: Sequence[str]
    every_s: float
    lasts_s: float
    rng: random.Random
    blows: list[Blow] = field(default_factory=list)
    starts: int = 0
    seen: set[str] = field(default_factory=set)
    tag: str = field(default_factory=lambda: f"{NAME}-{os.getpid()}")

    def run(self) -> float:
        """Return the seconds until the run was complete; raise ``RunFailed`` where it does not get there."""
        began, in_a_row, before = time.monotonic(), 0, -1
        while True:
            process = start_training(self.recipe, self.out, self.overrides, **{_TAG: self.tag})
            self.starts += 1
            code = self._attend(process, began)
            if code == ExitCode.OK:
                return time.monotonic() - began
            done = self._progress()
            # What this benchmark itself killed has not failed to get on.
            in_a_row, before = (in_a_row + (code != -signal.SIGKILL) if done == before else 0), done
            if in_a_row >= _RESTARTS_IN_A_ROW:
                raise RunFailed(f"{self.out}: {in_a_row} starts in a row without progress, the last with code {code}")

    def left_behind(self) -> int:
        """Return how many of the run's processes are alive some seconds after its end; they are killed."""
        ends = time.monotonic() + _GRACE_S
        while (left := living(self.seen) | with_variable(_TAG, self.tag)) and time.monotonic() < ends:
            time.sleep(_POLL_S)
        for mark in left:
            os.kill(int(mark.partition(":")[0]), signal.SIGKILL)
        return len(left)

    def _attend(self, process: subprocess.Popen[bytes], began: float) -> int:
        try:
            while process.poll() is None:
                time.sleep(_POLL_S)
                now = time.monotonic() - began
                self._look(now)
                last = self.blows[-1].at_s if self.blows else 0.0
                if now < self.lasts_s and now - last >= self.every_s:
                    self._strike(process.pid, now)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(_GRACE_S)
        return process.returncode

    def _look(self, now: float) -> None:
        """Note what has been done since, and what was lost."""
        if not self.blows:
            return
        done, lost = self._progress(), self._attempts_lost()
        for blow in self.blows:
            if blow.recovered_s is None and done > blow.progress:
                blow.recovered_s = now - blow.at_s
        self.blows[-1].attempts_lost = lost - sum(blow.attempts_lost for blow in self.blows[:-1])

    def _strike(self, run: int, now: float) -> None:
        """Hit one process with the first fault, in a drawn order, that finds one."""
        family = descendants(run)
        self.seen |= {mark for pid in family if (mark := process_mark(pid))}
        for fault in self.rng.sample(list(self.faults), len(self.faults)):
            sign, sent = FAULTS[fault]
            victims = _victims(run, family, sign)
            if victims:
                self.blows.append(Blow(fault, now, self._progress()))
                os.kill(self.rng.choice(victims), sent)
                return

    def _progress(self) -> int:
        """Return a number that grows with every stored episode and every complete stage."""
        buffer = ReplayBuffer(self.out / "episodes")
        stages = RecordedRun(self.out).manifest.stages() if (self.out / "manifest.json").exists() else []
        return len(buffer.ids()) + len(list(stages))

    def _attempts_lost(self) -> int:
        """Return attempts that failed, or had no end when their start ended."""
        lost = 0
        files = sorted((self.out / LEDGER).glob("*.jsonl"))
        for index, file in enumerate(files):
            events = [json.loads(line)["event"] for line in file.read_text().splitlines() if line.endswith("}")]
            lost += sum(event in (Event.REQUEUE, Event.FAIL) for event in events)
            if index < len(files) - 1:
                lost += events.count(Event.LEASE) - sum(event not in (Event.LEASE, Found.FOUND) for event in events)
        return lost


def main() -> None:
    """Run both and compare; exit code 1 where processes are left or the disturbed run's success lies lower."""
    options = _options()
    recording = Recording(NAME, options.results)
    shutil.rmtree(options.out / "disturbed", ignore_errors=True)
    control = RecordedRun(options.control) if options.control else _undisturbed(options)
    chaos = Chaos(
        options.recipe, options.out / "disturbed", options.overrides, options.faults, options.every,
        options.minutes * 60, random.Random(options.seed),
    )  # fmt: skip
    seconds = chaos.run()
    orphans = chaos.left_behind()
    rows = _by_fault(chaos.blows)
    columns = ["fault", "times", "recovery, median s", "p95 s", "attempts lost", "seconds lost"]
    recording.table(f"A fault every {options.every:g} s for {options.minutes:g} minutes",
                    columns, [list(row.values()) for row in rows])  # fmt: skip
    success = {name: _success(run) for name, run in (("control", control), ("disturbed", RecordedRun(chaos.out)))}
    for name, found in success.items():
        recording.note(f"{name}: {percent(found['value'])} % ({percent(found['low'])} to {percent(found['high'])})")
    recording.note(f"Done in {seconds:.0f} s with {chaos.starts} starts")
    worse = success["disturbed"]["high"] < success["control"]["low"]
    verdicts = [
        f"The disturbed run learns as well, its interval not below the control's: {met(not worse)}",
        f"No process is left behind: {orphans} are: {met(not orphans)}",
    ]
    recording.write({
        "by_fault": rows, "blows": [asdict(blow) for blow in chaos.blows], "starts": chaos.starts, "seconds": seconds,
        "orphans": orphans, "success": success, "verdicts": verdicts,
    })  # fmt: skip
    sys.exit(1 if orphans or worse else 0)


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--recipe", type=Path, default=LAPTOP, help="recipe of both runs")
    parser.add_argument("--out", type=Path, default=FOLDER / NAME, help="folder of the runs; what is there is removed")
    parser.add_argument("--control", type=Path, help="a complete run of the same recipe that nothing disturbed; "
                        "without it one is trained first")  # fmt: skip
    parser.add_argument("--minutes", type=float, default=30.0, help="for how long the run is hit; then it may finish")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two faults")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws")
    parser.add_argument("--faults", nargs="+", choices=list(FAULTS), default=list(FAULTS), help="faults to draw from")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="any setting")
    return parser.parse_args()


def _undisturbed(options: argparse.Namespace) -> RecordedRun:
    shutil.rmtree(options.out / "control", ignore_errors=True)
    return train(options.recipe, options.out / "control", options.overrides)


def _victims(run: int, family: dict[int, str], sign: str) -> list[int]:
    """Return the living processes of the run that a fault may hit."""
    if not sign:
        return [run]
    found = [pid for pid, command in family.items() if sign in command]
    if sign != "--waymark-browser=":
        return found
    # The main process of each Chromium, not its children nor the shell script that may start it.
    return [pid for pid in found if "--type=" not in family[pid] and not family[pid].startswith("/bin/")]


def _by_fault(blows: Sequence[Blow]) -> list[dict[str, Any]]:
    grouped: dict[str, list[Blow]] = defaultdict(list)
    for blow in blows:
        grouped[blow.fault].append(blow)
    rows = []
    for fault, hits in sorted(grouped.items()):
        times = [hit.recovered_s for hit in hits if hit.recovered_s is not None]
        rows.append({
            "fault": fault,
            "times": len(hits),
            "median_s": statistics.median(times) if times else None,
            "p95_s": float(np.percentile(times, 95)) if times else None,
            "attempts_lost": sum(hit.attempts_lost for hit in hits),
            "seconds_lost": sum(times),
        })  # fmt: skip
    return rows


def _success(run: RecordedRun) -> dict[str, float]:
    """Return the success after the last phase on the first evaluated split, with Wilson's interval."""
    outcomes = list(run.outcomes(run.phases, run.recipe.run.evaluation.splits[0]).values())
    return asdict(wilson(sum(outcome == 1.0 for outcome in outcomes), len(outcomes)))


if __name__ == "__main__":
    main()
