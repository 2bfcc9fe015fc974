"""Is a trained outcome model a judge?

Trains outcome models on the judged episodes of runs and holds them against the evaluators on held-out templates, beside
two controls that must do worse: one whose training episodes have each other's verdicts, and one that never sees the
last page. Whether a policy learns from them is ``benchmarks.orm_learning``'s question.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from analysis.discrimination import OutcomeReport
from benchmarks.recording import Recording, met, option_parser, percent
from benchmarks.runs import FOLDER, LAPTOP, train
from cluster.judge_commands import RULES, episodes_judged_by
from cluster.outcome_training import OutcomeTraining, train_outcome_model

NAME = "orm"
GOAL = 0.9
"""Area under the curve on held-out templates that issue 14 asks for."""
CALIBRATED = 0.1
"""Largest expected calibration error that counts as calibrated."""
MODEL, SHUFFLED, BLIND = "trained", "verdicts shuffled", "without the last page"
Numbers = dict[str, Any]


def main() -> None:
    """Print and write the reports, the verdicts, and what was learned from whom."""
    options = _options()
    recording = Recording(NAME, options.results)
    runs = options.run or [_played(options)]
    reports = {name: _report(name, runs, options, recording) for name in (MODEL, SHUFFLED, BLIND)}
    verdicts = _verdicts(reports)
    columns = ["model", "AUC", "from", "to", "accuracy", "calibration error", "kappa", "episodes"]
    recording.table("Held-out templates", columns, [_row(name, report) for name, report in reports.items()])
    numbers: Numbers = {
        "options": {"updates": options.updates, "learning_rate": options.learning_rate, "batch": options.batch},
        "reports": {name: asdict(report) for name, report in reports.items()},
        "verdicts": verdicts,
    }
    recording.write(numbers)


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument(
        "--run", type=Path, action="append", help="a run whose episodes teach; more than one may be given"
    )
    parser.add_argument("--start", type=Path, help="policy folder that models start from; default: RUN/policy")
    parser.add_argument("--out", type=Path, default=FOLDER / NAME, help="folder of models and runs")
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--max-prompt-tokens", type=int, default=640)
    parser.add_argument("--seed", type=int, default=0, help="draws the split by templates")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="for the run whose episodes teach, where none is given",
    )
    return parser.parse_args()


def _played(options: argparse.Namespace) -> Path:
    """Return a run whose episodes teach, without a browser: imperfect demonstrations and the policy's own."""
    return train(LAPTOP, options.out / "episodes", ["run.environment=browserless", *options.set]).out


def _report(name: str, runs: Sequence[Path], options: argparse.Namespace, recording: Recording) -> OutcomeReport:
    """Train one model and return what it is worth; all see the same split."""
    settings = OutcomeTraining(
        updates=options.updates,
        batch=options.batch,
        learning_rate=options.learning_rate,
        max_prompt_tokens=options.max_prompt_tokens,
        seed=options.seed,
    )
    settings = replace(settings, shuffled=name == SHUFFLED, page=name != BLIND)
    out = options.out / name.replace(" ", "-")
    start = options.start or runs[0] / "policy"
    episodes = episodes_judged_by(runs, RULES)
    report = train_outcome_model(episodes, start, out, settings, lambda done, loss: None)
    recording.note(f"{name}: AUC {report.auc.value:.3f} on {report.n} episodes of {report.templates} templates")
    return report


def _verdicts(reports: dict[str, OutcomeReport]) -> list[str]:
    model, shuffled, blind = (reports[name] for name in (MODEL, SHUFFLED, BLIND))
    there, of = _interval(model), _interval(shuffled)
    return [
        f"The AUC on {model.n} episodes of {model.templates} held-out templates is {there}; target {GOAL} "
        f"{met(model.auc.value >= GOAL)}",
        f"That is better than chance, {there}; target a lower end above 0.5 {met(model.auc.low > 0.5)}",
        f"The calibration error is {model.ece:.3f}; target {CALIBRATED} or less {met(model.ece <= CALIBRATED)}",
        f"Shuffled verdicts teach nothing, {of}; target 0.5 within the interval "
        f"{met(shuffled.auc.low <= 0.5 <= shuffled.auc.high)}",
        f"Without the last page the AUC is {_interval(blind)}; target lower than with it "
        f"{met(blind.auc.value < model.auc.value)}",
    ]


def _interval(report: OutcomeReport) -> str:
    return f"{report.auc.value:.3f} [{report.auc.low:.3f}, {report.auc.high:.3f}]"


def _row(name: str, report: OutcomeReport) -> list[str]:
    auc, kappa = report.auc, report.agreement.kappa
    cells = [f"{value:.3f}" for value in (auc.value, auc.low, auc.high)]
    agreed = "-" if kappa is None else f"{kappa:.2f}"
    return [name, *cells, percent(report.accuracy), f"{report.ece:.3f}", agreed, str(report.n)]


if __name__ == "__main__":
    main()
