"""Is a run that was killed many times the same as one that never was?

Trains a recipe that repeats exactly once undisturbed and once with a SIGKILL of its driver at each of N seeded
points, spread over all stages; some of them fall into the middle of a write. After each the same command is started
again at once. Then every episode, every number and every weight of the two runs is compared, bit for bit, and
``waymark audit`` must find nothing wrong with either. Needs ``/proc`` (Linux).
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.recording import Recording, met, option_parser
from benchmarks.runs import FOLDER, RecordedRun, RunFailed, start_training, train
from benchmarks.same_runs import Comparison
from cluster.audit.audit import audit
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.stage_files import stage_folders
from records.folder_mark import PREFIX

NAME = "resume"
RECIPE = Path(__file__).with_name("deterministic.yaml")
_POLL_S = 0.002
_WRITE_WAIT_S = 120.0


@dataclass(frozen=True)
class KillPoint:
    """When to kill: ``share`` of the stage's usual time after it began, or, ``in_write``, in its next write."""

    phase: int
    stage: str
    number: int
    share: float
    in_write: bool


@dataclass(frozen=True)
class Kill:
    """A kill as it happened: the last complete stage, and the files that were being written."""

    asked: KillPoint
    complete: str
    half_written: list[str]
    seconds_alive: float


class Driver(Protocol):
    """The driver's process, as far as killing it goes; ``subprocess.Popen`` is one."""

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it lives."""

    def wait(self) -> int:
        """Return the exit code as soon as there is one."""

    def kill(self) -> None:
        """Send SIGKILL."""


def main() -> None:
    """Run both and compare; exit code 1 where anything differs or does not add up."""
    options = _options()
    recording = Recording(NAME, options.results)
    overrides = [*options.overrides, f"run.environment={options.environment}"]
    for name in ("undisturbed", "killed"):
        shutil.rmtree(options.out / name, ignore_errors=True)
    undisturbed = train(options.recipe, options.out / "undisturbed", overrides)
    out = options.out / "killed"
    kills = []
    for point in kill_points(undisturbed, options.kills, options.seed):
        seconds = undisturbed.manifest.seconds[point.phase][point.stage]
        kills.append(kill_at(start_training(options.recipe, out, overrides), out, point, seconds))
    killed = train(options.recipe, out, overrides)
    found = Comparison.of(undisturbed, killed)
    wrong = {run.out.name: [asdict(f) for f in audit(run.out).findings] for run in (undisturbed, killed)}
    _show(recording, kills, found, wrong)
    different, findings = found.unequal.total(), sum(map(len, wrong.values()))
    verdicts = [
        f"A run that was killed {len(kills)} times is the one that never was: {different} of {found.compared.total()} "
        f"things differ: {met(not different)}",
        f"The audit finds nothing in either run: {findings} findings: {met(not findings)}",
    ]
    recording.write({
        "kills": [asdict(kill) for kill in kills],
        "compared": dict(found.compared),
        "different": dict(found.unequal),
        "first_differences": found.examples[:50],
        "audit": wrong,
        "seconds": {run.out.name: sum(map(sum, (s.values() for s in run.manifest.seconds.values())))
                    for run in (undisturbed, killed)},
        "verdicts": verdicts,
    })  # fmt: skip
    sys.exit(1 if different or findings else 0)


def kill_points(run: RecordedRun, count: int, seed: int) -> list[KillPoint]:
    """Return ``count`` points in the order of the run, no stage twice before each had its turn."""
    stages = run.manifest.stages()
    rng = random.Random(seed)
    rounds = [rng.sample(range(len(stages)), len(stages)) for _ in range(-(-count // len(stages)))]
    chosen = sorted([number for turn in rounds for number in turn][:count])
    return [KillPoint(*stages[n], number=n, share=rng.random(), in_write=rng.random() < 0.4) for n in chosen]


def kill_at(process: Driver, out: Path, point: KillPoint, seconds: float) -> Kill:
    """Kill the run's driver at a point and return what it was doing.

    Raises ``RunFailed`` where the run ended by itself with an error before.
    """
    started, left = time.monotonic(), half_written(out)
    for _ in _while(process, lambda: len(stage_folders(out)) < point.number):
        continue
    begun = time.monotonic()
    wait_s = _WRITE_WAIT_S if point.in_write else point.share * seconds
    for _ in _while(process, lambda: time.monotonic() - begun < wait_s):
        if len(stage_folders(out)) > point.number or (point.in_write and set(half_written(out)) - set(left)):
            break
    process.kill()
    code = process.wait()
    if code > 0:
        raise RunFailed(f"{out} ended by itself with exit code {code} before it was killed in {point}")
    done = stage_folders(out)
    return Kill(point, done[-1].name if done else "", half_written(out), time.monotonic() - started)


def half_written(out: Path) -> list[str]:
    """Return what is being written in a run folder at this moment: what is hidden there, but for its mark."""
    found: list[str] = []
    for folder in (out, *RunFolders(out).written_into()):
        try:
            hidden = [name for name in os.listdir(folder) if name.startswith(".") and not name.startswith(PREFIX)]
        except FileNotFoundError:
            continue
        found += [f"{folder.name}/{name}" for name in hidden]
    return sorted(found)


def _while(process: Driver, condition: Callable[[], bool]) -> Iterator[None]:
    """Yield every few milliseconds while a process lives and a condition holds."""
    while process.poll() is None and condition():
        yield
        time.sleep(_POLL_S)


def _show(recording: Recording, kills: list[Kill], found: Comparison, wrong: dict[str, list[dict[str, str]]]) -> None:
    rows = [
        [f"phase {kill.asked.phase} {kill.asked.stage}", "in a write" if kill.asked.in_write else kill.asked.share,
         kill.complete, len(kill.half_written), kill.seconds_alive]
        for kill in kills
    ]  # fmt: skip
    recording.table("SIGKILLs of the driver", ["stage", "moment", "last complete", "half written", "s alive"], rows)
    recording.table("The killed run beside the undisturbed one", ["what", "compared", "different"], found.rows)
    for example in found.examples[:5]:
        recording.note(f"different: {example}")
    for name, findings in wrong.items():
        recording.note(f"waymark audit of the {name} run: {len(findings)} findings")


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="recipe of both runs; must repeat exactly")
    parser.add_argument("--out", type=Path, default=FOLDER / NAME, help="folder of the runs; what is there is removed")
    parser.add_argument("--kills", type=int, default=20, help="how many times the run is killed")
    parser.add_argument("--seed", type=int, default=0, help="seed of the points")
    parser.add_argument("--environment", default="browserless", help="where episodes are played (run.environment)")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="any setting")
    return parser.parse_args()


if __name__ == "__main__":
    main()
