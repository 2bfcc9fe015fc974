"""Where does the time of a phase go: browser, policy, judge, learner, and the rest?

Reads a finished run; trains one where there is none. A stage that plays episodes is split in proportion to
what its episodes waited for (which overlap in time: with two cores, waiting for the policy or the browser
includes waiting for a core); the learner's stages are whole.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.recording import Recording, option_parser, percent
from benchmarks.runs import FOLDER, LAPTOP, RecordedRun, train
from cluster.errors import ManifestError
from cluster.run_folder.stage_results import WithEpisodes
from cluster.run_folder.summary import read_summary

NAME = "phase_shares"
PARTS = ("browser", "policy", "judge", "learner", "rest")
_LEARNER = ("clone", "critics", "replay", "actor")
_OF_PART = {"reset": "browser", "browser": "browser", "policy": "policy", "judge": "judge", "other": "rest"}


def main() -> None:
    """Print and write seconds and shares of each phase, of rollouts and learning alone, and of the evaluations."""
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--run", type=Path, default=FOLDER / "learning" / "mira-seed0", help="folder of a run")
    parser.add_argument("--recipe", type=Path, default=LAPTOP, help="recipe of the run where there is none yet")
    options = parser.parse_args()
    recording = Recording(NAME, options.results)
    run = _run(options)
    phases = {phase: _phase(run, phase) for phase in range(1, run.phases + 1)}
    without = {phase: _phase(run, phase, leave_out=("evaluate",)) for phase in phases}
    rows = [[f"phase {phase}", *_cells(parts)] for phase, parts in phases.items()]
    rows += [
        ["all phases", *_cells(_total(phases.values()))],
        ["without evaluations", *_cells(_total(without.values()))],
    ]
    recording.table("Share of a phase in percent", ["", "seconds", *PARTS], rows)
    summary = read_summary(run.out)
    start = sum(summary["phases"][0]["seconds"].values())
    recording.note(
        f"The run's stages took {summary['seconds']:.0f} s, {start:.0f} s of them before the first phase, each in the "
        "start that completed it; start, report and end of the program are not among them."
    )
    recording.write({
        "phases": [{"phase": phase, "seconds": parts} for phase, parts in phases.items()],
        "without_evaluations": [{"phase": phase, "seconds": parts} for phase, parts in without.items()],
        "stages": [{"phase": phase["phase"], "seconds": phase["seconds"]} for phase in summary["phases"]],
        "env_steps_per_s": [phase["env_steps_per_second"] for phase in summary["phases"][1:]],
        "run_seconds": summary["seconds"],
        "config_hash": summary["config_hash"],
    })  # fmt: skip


def _run(options: argparse.Namespace) -> RecordedRun:
    try:
        complete = read_summary(options.run)["complete"]
    except ManifestError:
        complete = False
    return RecordedRun(options.run) if complete else train(options.recipe, options.run)


def _phase(run: RecordedRun, phase: int, leave_out: Iterable[str] = ()) -> dict[str, float]:
    """Return wall seconds by part of one phase."""
    parts = dict.fromkeys(PARTS, 0.0)
    for stage, seconds in run.manifest.seconds[phase].items():
        if stage in leave_out:
            continue
        result = run.manifest.entry(phase, stage).result
        waited = result.seconds_by_part if isinstance(result, WithEpisodes) else {}
        total = sum(waited.values())
        if stage in _LEARNER or not total:
            parts["learner" if stage in _LEARNER else "rest"] += seconds
            continue
        for name, share in waited.items():
            parts[_OF_PART[name]] += seconds * share / total
    return parts


def _total(phases: Iterable[Mapping[str, float]]) -> dict[str, float]:
    every = list(phases)
    return {part: sum(phase[part] for phase in every) for part in PARTS}


def _cells(parts: Mapping[str, float]) -> list[str]:
    total = sum(parts.values())
    return [f"{total:.0f}", *(percent(parts[part] / total if total else None) for part in PARTS)]


if __name__ == "__main__":
    main()
