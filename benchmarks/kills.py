"""What does it cost when a browser worker, its Chromium or the policy server is killed in the middle of a phase?

Trains ``benchmarks/deterministic.yaml`` twice: undisturbed, and with one SIGKILL in the rollouts of each
phase. The recipe repeats exactly, so the two runs must have the same episodes, token by token and with the same
outcome: an accident that was scored, or that cut an episode short, shows as a difference. Needs ``/proc`` (Linux).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.process_tree import descendants, living, with_variable
from benchmarks.recording import Recording, met, option_parser
from benchmarks.runs import FOLDER, RecordedRun, check, start_training, train
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_results import RolloutsPlayed
from environments.browser.owned_processes import marked_processes, process_mark
from records.episodes import Source, Trajectory
from replay.buffer import ReplayBuffer

NAME = "kills"
RECIPE = Path(__file__).with_name("deterministic.yaml")
VICTIMS = ("worker", "chromium", "server")
_TAG = "WAYMARK_BENCHMARK_RUN"
_POLL_S, _GRACE_S = 0.2, 15.0


@dataclass
class Disturbance:
    """Kills one victim in each phase's rollouts, and remembers every process that the run ever had."""

    process: subprocess.Popen[bytes]
    out: Path
    victims: tuple[str, ...]
    after: int
    killed: list[dict[str, Any]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def watch(self) -> int:
        """Return the run's exit code."""
        buffer = ReplayBuffer(self.out / "episodes")
        while self.process.poll() is None:
            self.seen |= {mark for pid in descendants(self.process.pid) if (mark := process_mark(pid))}
            phase = len(self.killed) + 1
            if phase <= len(self.victims):
                buffer.refresh()
                judged = len(buffer.ids(sources=(Source.ROLLOUT,), phases=(phase,)))
                if judged >= self.after and not self._played(phase):
                    self._kill(self.victims[phase - 1], phase, judged)
            time.sleep(_POLL_S)
        return self.process.returncode

    def left_behind(self, tag: str) -> int:
        """Return how many of the run's processes are alive some seconds after its end."""
        ends = time.monotonic() + _GRACE_S
        while (left := living(self.seen) | with_variable(_TAG, tag)) and time.monotonic() < ends:
            time.sleep(_POLL_S)
        return len(left)

    def _played(self, phase: int) -> bool:
        return RunManifest.read(self.out).stage_done(phase, "rollouts")

    def _kill(self, victim: str, phase: int, judged: int) -> None:
        pids = _pids(self.process.pid, victim)
        if pids:  # a worker that is just being replaced has none for a moment
            os.kill(pids[0], signal.SIGKILL)
            self.killed.append({"victim": victim, "phase": phase, "judged_before": judged})


def main() -> None:
    """Run both, print what each kill cost; exit code 1 where an episode is lost, scored wrongly, or a process left."""
    options = _options()
    recording = Recording(NAME, options.results)
    victims = tuple(options.victims)
    overrides = [*options.overrides, f"run.phases={len(victims)}"]
    for name in ("control", "disturbed"):
        shutil.rmtree(options.out / name, ignore_errors=True)
    control = train(options.recipe, options.out / "control", overrides)
    out, tag = options.out / "disturbed", f"kills-{os.getpid()}"
    process = start_training(options.recipe, out, overrides, **{_TAG: tag})
    disturbance = Disturbance(process, out, victims, options.after)
    try:
        check(disturbance.watch(), out)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    orphans = disturbance.left_behind(tag)
    if len(disturbance.killed) < len(victims):
        sys.exit(f"only {len(disturbance.killed)} of {len(victims)} were killed in time; lower --after, or play longer")
    rows = [_row(kill, control, RecordedRun(out)) for kill in disturbance.killed]
    recording.table("One SIGKILL in the rollouts of each phase, against the same run without",
                    [name.replace("_", " ") for name in rows[0]], [list(row.values()) for row in rows])  # fmt: skip
    harmed = [row for row in rows if not _harmless(row)]
    verdicts = [
        f"A kill loses no episode and changes none: {len(harmed)} of {len(rows)} kills did: {met(not harmed)}",
        f"No process outlives the disturbed run: {orphans} did: {met(not orphans)}",
    ]
    numbers = {"kills": rows, "orphans": orphans, "episodes": len(RecordedRun(out).buffer), "verdicts": verdicts}
    recording.write(numbers)
    sys.exit(1 if harmed or orphans else 0)


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="recipe of both runs; must repeat exactly")
    parser.add_argument("--out", type=Path, default=FOLDER / NAME, help="folder of the runs; what is there is removed")
    parser.add_argument("--victims", nargs="+", choices=VICTIMS, default=list(VICTIMS), help="one for each phase")
    parser.add_argument("--after", type=int, default=4, help="judged episodes of the phase before its kill")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="any setting")
    return parser.parse_args()


def _pids(run: int, victim: str) -> list[int]:
    """Return the ids of a run's processes of one kind."""
    family = descendants(run)
    workers = [pid for pid, command in family.items() if command.startswith("ray::RolloutWorker")]
    if victim == "worker":
        return workers
    if victim == "server":
        return [pid for pid, command in family.items() if command.startswith("ray::PolicyServer")]
    owned = [p for worker in workers if (mark := process_mark(worker)) for p in marked_processes(mark)]
    main = [p for p in owned if "--waymark-browser=" in p.command and "--type=" not in p.command]
    return [p.pid for p in main if not p.command.startswith("/bin/")]  # not the shell script that may start it


def _row(kill: dict[str, Any], control: RecordedRun, disturbed: RecordedRun) -> dict[str, Any]:
    """Return what became of the phase of one kill, and of the same phase in the undisturbed run."""
    phase = kill["phase"]
    data, before = (run.manifest.result(phase, RolloutsPlayed) for run in (disturbed, control))
    found = {t.episode_id: t for t in disturbed.buffer.trajectories(data.episodes)}
    expected = {t.episode_id: t for t in control.buffer.trajectories(before.episodes)}
    seconds = [run.manifest.seconds[phase]["rollouts"] for run in (disturbed, control)]
    return kill | {
        "dispatched": data.dispatched,
        "judged": len(data.episodes),
        "failed": sum(data.failures.values()),
        "attempts_lost": sum(data.incidents.values()),
        "workers_lost": data.worker_losses,
        "zeros": sum(t.outcome == 0.0 for t in found.values()),
        "zeros_in_control": sum(t.outcome == 0.0 for t in expected.values()),
        "unlike_control": sum(e not in expected or _course(t) != _course(expected[e]) for e, t in found.items()),
        "seconds": seconds[0],
        "seconds_lost": seconds[0] - seconds[1],
        "orphans": data.orphans,
    }


def _harmless(row: dict[str, Any]) -> bool:
    return row["dispatched"] == row["judged"] + row["failed"] and not row["unlike_control"]


def _course(episode: Trajectory) -> tuple[object, ...]:
    """Return what happened in an episode: every action, how it ended and what it was worth."""
    actions = tuple(step.action_ids.tobytes() for step in episode.steps)
    return actions, episode.termination, episode.answer, episode.outcome


if __name__ == "__main__":
    main()
