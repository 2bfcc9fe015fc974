"""Does this code decide and learn what another commit did, bit for bit?

Runs ``deterministic.yaml`` and ``from_checkpoint.yaml`` from nothing, in real Chromium, and holds each episode, each
number and each weight against ``recorded/RECIPE.json``, which was made by the commit that it names. Nothing is rounded.
Numbers that are new are not compared. Torch rounds otherwise on other processors: there, let ``write`` record a run of
the old commit first.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from pathlib import Path

from benchmarks.recording import Recording, option_parser
from benchmarks.run_facts import run_facts
from benchmarks.runs import FOLDER, train

NAME = "recorded"
HERE = Path(__file__).parent
RECIPES = ("deterministic", "from_checkpoint")


def main() -> None:
    """Run, print what was compared and what differs; exit code 1 where anything does."""
    options = _options()
    recording = Recording(NAME, options.results)
    compared: Counter[str] = Counter()
    differing: list[str] = []
    commits = set()
    for recipe in options.recipes:
        known = json.loads((HERE / "recorded" / f"{recipe}.json").read_text(encoding="utf-8"))
        commits.add(known["commit"])
        out = options.out / recipe
        shutil.rmtree(out, ignore_errors=True)
        found = run_facts(train(HERE / f"{recipe}.yaml", out).out)
        for kind, facts in known["facts"].items():
            compared[kind] += len(facts)
            differing += [
                f"{recipe}: {kind}: {name}" for name, value in facts.items() if found[kind].get(name) != value
            ]
            more = sorted(set(found[kind]) - set(facts)) if kind != "numbers" else []
            differing += [f"{recipe}: {kind}: {name} is new" for name in more]
    wrong = Counter(line.split(": ")[1] for line in differing)
    title = f"Against {', '.join(sorted(commits))}"
    recording.table(title, ["what", "compared", "different"], [[k, n, wrong[k]] for k, n in compared.items()])
    for line in differing[:10]:
        recording.note(f"different: {line}")
    target = f"{sum(compared.values())} facts of runs at {', '.join(sorted(commits))} are the same, bit for bit"
    recording.write({
        "compared": dict(compared),
        "different": dict(wrong),
        "first_differences": differing[:50],
        "verdicts": [f"{target}: {'missed, ' + str(len(differing)) + ' differ' if differing else 'met'}"],
    })  # fmt: skip
    sys.exit(1 if differing else 0)


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--out", type=Path, default=FOLDER / NAME, help="folder of the runs; what is there is removed")
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=RECIPES, help="which to run")
    return parser.parse_args()


def write(recipe: str, out: Path, commit: str) -> None:
    """Record the finished run ``out``, which ``commit`` made, as what ``recipe`` is held against."""
    content = {"commit": commit, "facts": run_facts(out)}
    (HERE / "recorded" / f"{recipe}.json").write_text(json.dumps(content, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
