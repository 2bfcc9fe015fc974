"""What does planning at inference bring a trained policy: the milestone state in its prompt, and re-planning?

Clones two policies from the same demonstrations, one for each prompt format (with and without the milestone state), and
lets each play the held-out tasks and the unseen templates, greedily, alone and with re-planning. Arms are paired by
task. A policy of an earlier run (``--trained``) is evaluated beside them, alone and with re-planning. What was trained
or played already lies under ``--out`` and is not done again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.comparison import Seeds, difference
from analysis.failures import failure_report
from analysis.settings import AnalysisSettings
from benchmarks.recording import Recording, met, option_parser, percent, points
from benchmarks.runs import FOLDER, ROOT, evaluate, train
from cluster.failure_analysis import episodes_of, routes_of
from replay.stuck import Stuck, stuck_events

NAME = "sgo"
RECIPE = ROOT / "cluster" / "recipes" / "tiny-cloned.yaml"
PLAIN, STATE = "waymark", "waymark_milestones"
Numbers = dict[str, Any]


@dataclass(frozen=True)
class Arm:
    """One way to play: a policy, the format of its prompts, and the planning mode."""

    name: str
    policy: Path
    prompt_format: str
    mode: str
    told: bool = False


def main() -> None:
    """Print and write success, stuck rate and latency of each arm on each split, and the paired differences."""
    options = _options()
    recording = Recording(NAME, options.results)
    arms = _arms(options)
    played = {split: {arm.name: _played(arm, split, options) for arm in arms} for split in options.splits}
    compared = {split: _differences(played[split]) for split in options.splits}
    for split in options.splits:
        recording.table(f"{split}, in percent", ["arm", *_COLUMNS], [_row(n, played[split][n]) for n in played[split]])
        title = f"{split}: differences of success in percent points"
        rows = [[name, *_difference_cells(found)] for name, found in compared[split].items()]
        recording.table(title, ["pair", "difference", "from", "to", "McNemar p", "verdict"], rows)
    verdicts = [line for split in options.splits for line in _verdicts(split, played[split], compared[split])]
    numbers = {
        "environment": options.environment,
        "overrides": options.set,
        "splits": {
            split: {
                "arms": {
                    name: {k: v for k, v in arm.items() if k != "outcomes"} for name, arm in played[split].items()
                },
                "differences": compared[split],
            }
            for split in options.splits
        },
        "verdicts": verdicts,
    }
    recording.write(numbers)


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--out", type=Path, default=FOLDER / NAME, help="folder of the policies and the episodes")
    parser.add_argument("--trained", type=Path, help="a policy of another run, in the format without the state")
    parser.add_argument("--splits", nargs="+", default=["test", "test_templates"])
    parser.add_argument("--tasks", type=int, default=138, help="tasks of each split at most")
    parser.add_argument("--environment", default="embedded", help="embedded (browser) or browserless")
    parser.add_argument("--updates", type=int, default=3000, help="updates of cloning")
    parser.add_argument("--told", action="store_true", help="also with a line in the prompt where the policy is stuck")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for training and evaluation")
    return parser.parse_args()


def _arms(options: argparse.Namespace) -> list[Arm]:
    """Return all arms; clone the policies that are not there yet."""
    shorter = [f"learner.clone.updates={options.updates}", "run.evaluation.tasks_per_split=1", *options.set]
    policies = {
        prompt_format: train(RECIPE, options.out / prompt_format, [f"policy.prompt_format={prompt_format}", *shorter])
        for prompt_format in (PLAIN, STATE)
    }
    named = [("plain", policies[PLAIN].folders.trained, PLAIN), ("state", policies[STATE].folders.trained, STATE)]
    named += [("trained", options.trained, PLAIN)] if options.trained else []
    arms = [Arm(name, policy, shown, "none") for name, policy, shown in named]
    arms += [Arm(f"{name} + re-plan", policy, shown, "replan") for name, policy, shown in named]
    told = named if options.told else []
    return arms + [Arm(f"{name} + re-plan + told", policy, shown, "replan", told=True) for name, policy, shown in told]


def _played(arm: Arm, split: str, options: argparse.Namespace) -> Numbers:
    """Return what an arm came to on a split; play it where that was not done."""
    folder = options.out / options.environment / split / arm.name.replace(" ", "")
    found = json.loads(_evaluated(arm, split, folder, options).read_text(encoding="utf-8"))
    buffer = episodes_of(folder)
    episodes = buffer.trajectories(buffer.ids())
    report = failure_report(arm.name, routes_of(buffer), AnalysisSettings())
    events = [[how for _, how in stuck_events(episode)] for episode in episodes]
    return {
        "outcomes": {episode.task_id: episode.outcome for episode in episodes},
        "success": {name: found[name] for name in ("success", "n", "low", "high")},
        "lost": found["lost"],
        "failed_stuck_midway": report.everything.stuck_rate.success,
        "episodes_in_a_cycle": _share([Stuck.CYCLE in kinds for kinds in events]),
        "steps": _share([len(episode.steps) for episode in episodes]),
        "planning": found["planning"],
    }


def _evaluated(arm: Arm, split: str, folder: Path, options: argparse.Namespace) -> Path:
    settings = {
        "run.environment": options.environment,
        "run.evaluation.tasks": json.dumps({split: options.tasks}),
        "policy.prompt_format": arm.prompt_format,
        "rollout.planning.mode": arm.mode,
        "rollout.planning.tell": json.dumps(arm.told),
    }
    said = [*options.set, *(f"{key}={value}" for key, value in settings.items())]
    return evaluate(RECIPE, arm.policy, split, folder, said)


def _differences(arms: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Compare re-planning with its absence for each policy, and the two formats with each other."""
    pairs = [(f"{name} + re-plan", name) for name in ("plain", "state", "trained") if f"{name} + re-plan" in arms]
    pairs += [("state", "plain"), ("state + re-plan", "plain")]
    pairs += [(name, name.removesuffix(" + told")) for name in arms if name.endswith("told")]
    return {f"{first} – {second}": _difference(arms[first], arms[second]) for first, second in pairs}


def _difference(first: Numbers, second: Numbers) -> Numbers:
    def seeds(arm: Numbers) -> Seeds:
        return {0: {"all": arm["outcomes"]}}

    found = difference(seeds(first), seeds(second), "all")
    mean = found["mean"]
    verdict = "better" if mean["low"] > 0 else "worse" if mean["high"] < 0 else "no difference shown"
    return {
        "success": mean,
        "p_mcnemar": found["p_mcnemar"][0],
        "verdict": verdict,
        "cycles": first["episodes_in_a_cycle"] - second["episodes_in_a_cycle"],
        "pairs": len(set(first["outcomes"]) & set(second["outcomes"])),
    }


def _verdicts(split: str, arms: Mapping[str, Numbers], compared: Mapping[str, Numbers]) -> list[str]:
    """Say for each policy whether re-planning brings success, and whether fewer episodes end stuck midway."""
    said = [_gain(split, "The milestone state in the prompt", compared["state – plain"]["success"])]
    for name in (name for name in arms if f"{name} + re-plan" in arms):
        with_it, without = arms[f"{name} + re-plan"], arms[name]
        said.append(_gain(split, f"Re-planning ({name})", compared[f"{name} + re-plan – {name}"]["success"]))
        before, after = (percent(arm["failed_stuck_midway"]) for arm in (without, with_it))
        fewer = met(with_it["failed_stuck_midway"] < without["failed_stuck_midway"])
        said.append(
            f"{split}: of {name}'s episodes {before} % end stuck midway, {after} % re-planned; target fewer {fewer}"
        )
    return said


def _gain(split: str, what: str, found: Mapping[str, float]) -> str:
    return f"{split}: {what} changes success by {points(found)}; target an interval above 0 {met(found['low'] > 0)}"


_COLUMNS = ("success", "from", "to", "episodes", "stuck midway", "in a cycle", "steps", "decision p50", "p95 (s)")


def _row(name: str, arm: Numbers) -> Sequence[object]:
    success, planning = arm["success"], arm["planning"]
    rates = [percent(success[key]) for key in ("success", "low", "high")]
    stuck = [percent(arm[key]) for key in ("failed_stuck_midway", "episodes_in_a_cycle")]
    return [name, *rates, success["n"], *stuck, arm["steps"], planning["decision_s_p50"], planning["decision_s_p95"]]


def _difference_cells(found: Numbers) -> Sequence[object]:
    return [*(percent(found["success"][key]) for key in ("value", "low", "high")), found["p_mcnemar"], found["verdict"]]


def _share(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


if __name__ == "__main__":
    main()
