"""Does the driver hold 10,000 episodes of 1 MB, 2,048 slots and 256 workers?

Episodes are written as shards of one, as the worst case has them; workers are stand-ins that answer at once, and there
is no Ray. Memory is the peak of a process of its own that does what the driver does at a phase's end. Times are seconds
of CPU, wall seconds stand beside them. Controls must fail the claims: the ways that were taken before, or
holding episodes, on the same files. The cold start has none: its limit is a number of seconds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import stats

from benchmarks.recording import Recording, met, option_parser
from benchmarks.runs import child_environment
from cluster.audit.accounts import check_episodes, check_ledger, check_training
from cluster.audit.files import check_shards
from cluster.audit.record import AuditedRun
from cluster.run_folder.ledger import LedgerLine
from cluster.run_folder.stage_files import StageEntry
from cluster.run_folder.stage_results import Published, RolloutsPlayed
from policy.published_weights import PublishedWeights
from records.episodes import Source, Step, Task, Termination, Trajectory
from replay.buffer import ReplayBuffer
from replay.shards import write_shard
from rollout_workers.gate import Gate
from rollout_workers.leases import EpisodeLedger, EpisodeState, Event, Lease, no_journal
from rollout_workers.nodes import STEADY
from rollout_workers.pool import _Run
from rollout_workers.results import Completed, EpisodeAnswer, EpisodeSummary
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec
from rollout_workers.worker_group import Answered

NAME = "ceiling"
MEMORY_MB, TURN_MS, COLD_S, STEEPEST = 1000.0, 2.0, 30.0, 1.35
"""The targets; a time grows no faster than the number of episodes where the exponent's interval lies below the last."""
_STEPS, _TOKENS = 30, 4096
_SIZES = (500, 1000, 2000, 4000)
_REPEATS = 5
_TASK = Task("shop.t", ("shop",), "Do it", "__SHOP__/", {}, "shop.template", split="train", horizon=3)


def main() -> None:
    """Measure, print each claim with its control, and write the numbers."""
    options = _options()
    if options.child:
        print(json.dumps(_child(options.child, options.folder)))
        return
    recording = Recording(NAME, options.results)
    numbers: dict[str, Any] = {"dispatch": _dispatch(options.dispatched, options.workers, options.slots)}
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        numbers["growth"] = _growth(Path(scratch) / "small")
        folder = Path(scratch) / "large"
        started = time.monotonic()
        _write(folder, range(options.episodes), _STEPS, _TOKENS)
        held = sum(path.stat().st_size for path in folder.iterdir())
        numbers["files"] = {"episodes": options.episodes, "bytes": held, "written_s": time.monotonic() - started}
        numbers["phase_end"] = _in_child("phase_end", folder)
        numbers["hold_all"] = _in_child("hold_all", _part(folder, options.held))
    numbers["load_after"] = os.getloadavg()[0]
    numbers["verdicts"] = _verdicts(numbers)
    recording.write(numbers)
    if not all(verdict.endswith(met(True)) for verdict in numbers["verdicts"]):
        sys.exit(1)


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--episodes", type=int, default=10_000, help="episodes of 1 MB on disk")
    parser.add_argument("--dispatched", type=int, default=10_000, help="episodes that the stand-ins play")
    parser.add_argument("--workers", type=int, default=256, help="stand-ins")
    parser.add_argument("--slots", type=int, default=8, help="slots of each")
    parser.add_argument("--held", type=int, default=1500, help="episodes that the control holds at once")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the files, which are removed")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, default=None, help=argparse.SUPPRESS)
    return parser.parse_args()


def _episode(number: int, steps: int, tokens: int) -> Trajectory:
    """Return an episode of which each step has ``tokens`` prompt ids and a page of as many times four characters."""
    generator = np.random.default_rng(number)
    page = generator.integers(97, 123, size=4 * tokens, dtype=np.uint8).tobytes().decode()
    played = tuple(
        Step(
            index=index,
            url=_TASK.start_url,
            observation=page,
            prompt_ids=generator.integers(0, 60_000, size=tokens, dtype=np.int32),
            action_ids=np.array([4, 5], dtype=np.int32),
            logprobs=np.array([-0.5, -0.25], dtype=np.float32),
            policy_version=0,
            temperature=1.0,
            action_text='exit(message="done")',
        )
        for index in range(steps)
    )
    return Trajectory(
        _episode_id(number), _TASK.task_id, _TASK.template, "shop", "train", "Do it", Source.ROLLOUT, 1, 0,
        steps=played, termination=Termination.EXIT, answer="done", outcome=float(number % 2), failure=None, horizon=3,
    )  # fmt: skip


def _episode_id(number: int) -> str:
    return f"rollout-{number:06d}"


def _write(folder: Path, numbers: range, steps: int, tokens: int) -> None:
    """Write the files that are measured; forcing them to the disk is not measured, and would take most of the time."""
    with patch.object(os, "fsync", lambda descriptor: None):
        for number in numbers:
            write_shard(folder, [_episode(number, steps, tokens)])


def _record(buffer: ReplayBuffer) -> AuditedRun:
    """Return what a run with these episodes in its first phase says about itself."""
    ids = buffer.ids()
    weights = PublishedWeights(0, "0" * 64, "weights/actor-0.safetensors")
    published = Published(weights, ("server-0",), {}, {}, 0.0)
    successes = sum(buffer.entry(i).outcome == 1.0 for i in ids)
    played = RolloutsPlayed(ids, len(ids), successes, {}, {}, 0.0, {}, 0, 0)
    files = {f"episodes/{buffer.entry(i).shard.name}": "" for i in ids}
    entries = {
        (0, "publish"): StageEntry(0, published, {weights.path: weights.checksum}),
        (1, "rollouts"): StageEntry(1, played, files, start=1),
    }
    events = (Event.LEASE, Event.COMPLETE)
    ledger = [LedgerLine(1, 1, "rollouts", event, i, 1, 0) for i in ids for event in events]
    header: Any = {"data": {}, "config": {"replay": {}, "rollout": {}}}
    return AuditedRun(buffer.directory.parent, header, entries, [], buffer, ledger, "", [])


def _audit(buffer: ReplayBuffer) -> int:
    """Check the accounts as the end of a phase does; return the number of findings."""
    run = _record(buffer)
    parts = [check_shards(run), *(check(run, {0, 1}) for check in (check_episodes, check_training, check_ledger))]
    return sum(len(part.findings) for part in parts)


def _audit_per_episode(buffer: ReplayBuffer) -> int:
    """The control: the names of a stage's shards are gathered anew for each episode, as they once were."""
    run = _record(buffer)
    files = run.entries[1, "rollouts"].files
    missing = 0
    for episode_id in run.episodes((1, "rollouts")):
        named = {name.rpartition("/")[2] for name in files}
        missing += buffer.entry(episode_id).shard.name not in named
    return missing


def _growth(folder: Path) -> dict[str, Any]:
    """Time refreshes and audits over ever more shards, and fit the exponents."""
    times: dict[str, list[float]] = {"refresh": [], "audit": [], "quadratic": []}
    sizes: list[int] = []
    written = 0
    for size in _SIZES:
        _write(folder, range(written, size), 1, 8)
        written = size
        buffer = ReplayBuffer(folder)
        for _ in range(_REPEATS):
            sizes.append(size)
            times["refresh"].append(min(_cpu(buffer.refresh) for _ in range(_REPEATS)))  # of milliseconds, the least
            times["audit"].append(_cpu(partial(_audit, buffer)))
            times["quadratic"].append(_cpu(partial(_audit_per_episode, buffer)))
    return {
        "shards": sizes,
        "cpu_s": times,
        "exponents": {name: _exponent(sizes, took) for name, took in times.items()},
    }


def _exponent(sizes: list[int], seconds: list[float]) -> dict[str, float]:
    """Return k of seconds ~ size^k, by least squares of the logarithms, with its 95 % interval."""
    fit = stats.linregress(np.log(sizes), np.log(seconds))
    half = stats.t.ppf(0.975, len(sizes) - 2) * fit.stderr
    return {"exponent": float(fit.slope), "low": float(fit.slope - half), "high": float(fit.slope + half)}


def _cpu(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


class _StandIns:
    """A ``WorkerGroup`` of workers that answer at random, and the clock of the driver's turns between two polls."""

    def __init__(self, workers: int, slots: int, answers: int) -> None:
        self.capacity = slots
        self.losses = self.orphans_killed = 0
        self.loop_lag_s = 0.0
        self.turns_ms: list[float] = []
        self._workers = list(range(workers))
        self._answers = answers
        self._random = random.Random(0)
        self._held: list[tuple[str, Lease]] = []
        self._left: float | None = None
        self.most_held = 0

    def ready(self) -> list[int]:
        return self._workers

    def leaving(self) -> dict[int, float]:
        return {}

    def tend(self) -> list[Answered]:
        return []

    def send(self, worker: int, run: str, lease: Lease, spec: EpisodeSpec) -> bool:
        self._held.append((run, lease))
        self.most_held = max(self.most_held, len(self._held))
        return True

    def poll(self, timeout_s: float) -> list[Answered]:
        if self._left is not None:
            self.turns_ms.append(1000 * (time.thread_time() - self._left))
        answered = []
        for _ in range(min(self._answers, len(self._held))):
            at = self._random.randrange(len(self._held))
            self._held[at], self._held[-1] = self._held[-1], self._held[at]
            run, lease = self._held.pop()
            summary = EpisodeSummary(1.0, _STEPS, 0, f"worker-{lease.holder}", 1.0, 0.1, 0.5, 0.3, 0.1)
            completed = Completed(summary, f"shard-{lease.episode_id}.arrow")
            answered.append(Answered(run, EpisodeAnswer(lease, completed)))
        self._left = time.thread_time()
        return answered


class _ScanningLedger(EpisodeLedger):
    """The control: every question looks at every episode, as it once was."""

    def pending(self, now: float = 0.0) -> Iterator[str]:
        return (i for i, entry in self._entries.items() if entry.state is EpisodeState.PENDING)

    def held_count(self, holder: int) -> int:
        return sum(e.lease is not None and e.lease.holder == holder for e in self._entries.values())

    def counts(self) -> dict[EpisodeState, int]:
        return dict.fromkeys(EpisodeState, 0) | Counter(e.state for e in self._entries.values())


def _dispatch(episodes: int, workers: int, slots: int) -> dict[str, Any]:
    specs = [EpisodeSpec(_episode_id(n), _TASK, Source.ROLLOUT, 1, n) for n in range(episodes)]
    answers = max(1, workers * slots // 256)

    def played(ledger: type[EpisodeLedger], most_turns: int | None) -> dict[str, float]:
        group = _StandIns(workers, slots, answers)
        run = _Run("run", specs, group, Gate(None), STEADY, RolloutSettings(), lambda counts: None, no_journal)
        run._ledger = ledger((spec.episode_id for spec in specs), max_attempts=2)
        turns = itertools.count() if most_turns is None else range(most_turns)
        for _ in turns:
            if run._ledger.done:
                break
            run.turn()
        full = group.turns_ms[1:]  # the first one fills every slot
        return {
            "turns": len(full),
            "first_ms": group.turns_ms[0],
            "mean_ms": float(np.mean(full)),
            "p99_ms": float(np.percentile(full, 99)),
            "slots_filled": group.most_held,
        }

    return {
        "episodes": episodes, "workers": workers, "slots": workers * slots, "answers_a_turn": answers,
        "now": played(EpisodeLedger, None), "scanning": played(_ScanningLedger, 6),
    }  # fmt: skip


def _part(folder: Path, episodes: int) -> Path:
    """Return a folder with so many of the shards: what a control holds at once, it need not find among all."""
    part = folder.with_name("part")
    part.mkdir()
    for path in sorted(folder.iterdir())[:episodes]:
        (part / path.name).hardlink_to(path)
    return part


def _in_child(what: str, folder: Path) -> dict[str, Any]:
    words = [sys.executable, "-m", "benchmarks.ceiling", "--child", what, "--folder", str(folder)]
    done = subprocess.run(words, env=child_environment(), capture_output=True, text=True, check=True)
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def _child(what: str, folder: Path) -> dict[str, Any]:
    """Index the folder as a start does; then end a phase, or hold all episodes at once. Return times and peak."""
    wall, cpu = time.monotonic(), time.process_time()
    buffer = ReplayBuffer(folder)
    said: dict[str, Any] = {"cold_s": time.process_time() - cpu, "cold_wall_s": time.monotonic() - wall}
    said["peak_after_cold_mb"] = _peak_mb()
    if what == "hold_all":
        episodes = buffer.trajectories(buffer.ids())
        said |= {"held": len(episodes), "peak_mb": _peak_mb()}
        return said
    wall, cpu = time.monotonic(), time.process_time()
    said["findings"] = _audit(buffer)
    said |= {"audit_s": time.process_time() - cpu, "audit_wall_s": time.monotonic() - wall}
    wall, cpu = time.monotonic(), time.process_time()
    buffer.refresh()
    said |= {"refresh_s": time.process_time() - cpu, "refresh_wall_s": time.monotonic() - wall, "peak_mb": _peak_mb()}
    return said


def _peak_mb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _verdicts(numbers: dict[str, Any]) -> list[str]:
    end, held, dispatch, files = (numbers[part] for part in ("phase_end", "hold_all", "dispatch", "files"))
    turn, scanning = dispatch["now"]["mean_ms"], dispatch["scanning"]["mean_ms"]
    growth = numbers["growth"]["exponents"]
    of_files = f"{files['episodes']:,} episodes of {files['bytes'] / files['episodes'] / 1e6:.2f} MB"
    of_slots = f"{dispatch['slots']:,} slots of {dispatch['workers']} workers"
    linear = [
        f"{name} grows with the number of episodes to the power {_interval(growth[part])}; "
        f"target a whole interval under {STEEPEST:g} {met(growth[part]['high'] < STEEPEST)}"
        for part, name in (("refresh", "A refresh"), ("audit", "An audit"))
    ]
    return [
        f"Peak memory of the driver at the end of a phase with {of_files}: {end['peak_mb']:.0f} MB; target under "
        f"{MEMORY_MB:.0f} MB {met(end['peak_mb'] < MEMORY_MB)}",
        f"Control: with {held['held']:,} of them held at once {held['peak_mb']:.0f} MB; target no less than "
        f"{MEMORY_MB:.0f} MB {met(held['peak_mb'] >= MEMORY_MB)}",
        f"Dispatch to {of_slots}: {turn:.2f} ms of CPU a turn, 99 % within {dispatch['now']['p99_ms']:.2f} ms; target "
        f"under {TURN_MS:g} ms {met(turn < TURN_MS)}",
        f"Control: with a ledger that looks at every episode {scanning:.0f} ms; target no less than {TURN_MS:g} ms "
        f"{met(scanning >= TURN_MS)}",
        *linear,
        f"Control: an audit that gathers names for each episode, to the power {_interval(growth['quadratic'])}; target "
        f"a whole interval above {STEEPEST:g} {met(growth['quadratic']['low'] > STEEPEST)}",
        f"Cold start over {of_files}: {end['cold_s']:.1f} s of CPU; target under {COLD_S:.0f} s "
        f"{met(end['cold_s'] < COLD_S)}",
        f"The same by the clock, the files as just written: {end['cold_wall_s']:.1f} s; target under {COLD_S:.0f} s "
        f"{met(end['cold_wall_s'] < COLD_S)}",
        f"Findings of the audit: {end['findings']}; target none {met(end['findings'] == 0)}",
    ]


def _interval(fit: dict[str, float]) -> str:
    return f"{fit['exponent']:.2f} [{fit['low']:.2f}, {fit['high']:.2f}]"


if __name__ == "__main__":
    main()
