"""What do a study's policies do on other wordings, longer chains and unseen atoms? Before and after RL.

Each seed's start and the last policy of each arm play those splits, greedily and without a browser. Arms are paired
with their start by seed and task. The study itself chose nothing on these splits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.comparison import Seeds, difference, level
from analysis.routes import Route
from benchmarks.recording import Recording, met, percent, points
from benchmarks.study_policies import StudyPolicies, study_options
from cluster.studies.design import START

NAME = "unseen"
SPLITS = ("test_wordings", "test_long", "test_atoms")
GOAL = 0.30
"""Success on unseen atoms that the project set itself."""


def main() -> None:
    """Play what was not played yet, compare, write."""
    parser = study_options(NAME, __doc__ or "", "webagent_r1")
    parser.add_argument("--splits", nargs="+", default=list(SPLITS), help="splits that the policies play")
    options = parser.parse_args()
    recording = Recording(NAME, options.results)
    policies = StudyPolicies.of(options, recording.note)
    names = (START, *(options.arms or policies.arms))
    played = {name: _outcomes({split: policies.played(name, split) for split in options.splits}) for name in names}
    rows = {
        split: {
            name: {**level(found, split), "over_start": difference(found, played[START], split)}
            for name, found in played.items()
        }
        for split in options.splits
    }
    verdicts = []
    for split, of_split in rows.items():
        recording.table(
            f"{options.study}, {split}: success in percent",
            ["policy", "success", "from", "to", "by seed", "over the start"],
            [
                [name, *(percent(row["mean"][key]) for key in ("value", "low", "high")),
                 ", ".join(map(percent, row["by_seed"])), "" if name == START else points(row["over_start"]["mean"])]
                for name, row in of_split.items()
            ],
        )  # fmt: skip
        verdicts += [line for name, row in of_split.items() if name != START for line in _verdicts(split, name, row)]
    recording.write({"study": options.study, "splits": rows, "verdicts": verdicts})


def _outcomes(by_split: Mapping[str, Mapping[int, Sequence[Route]]]) -> Seeds:
    """Return outcomes by seed, split and task; episodes without a verdict have none."""
    seeds: dict[int, dict[str, dict[str, float]]] = {}
    for split, of_split in by_split.items():
        for seed, routes in of_split.items():
            judged = {route.task_id: route.outcome for route in routes if route.outcome is not None}
            seeds.setdefault(seed, {})[split] = judged
    return seeds


def _verdicts(split: str, name: str, row: Mapping[str, Any]) -> list[str]:
    gain, mean = row["over_start"]["mean"], row["mean"]
    said = [f"{name} is above its start on {split}: {points(gain)}; target an interval above 0: {met(gain['low'] > 0)}"]
    if split == "test_atoms":
        figures = f"{percent(mean['value'])} % [{percent(mean['low'])}, {percent(mean['high'])}]"
        said.append(f"{name} solves of unseen atoms {figures}; target {percent(GOAL)} %: {met(mean['value'] >= GOAL)}")
    return said


if __name__ == "__main__":
    main()
