"""What are a run's milestones worth, and can a trained checker or sentences take the place of their checks?

On the judged rollouts and evaluations of a finished run: AUROC of the share completed, F1 of completing all, Kendall's
tau, for the milestones as they were played, for their checks on the recorded pages, for a checker that is trained on
other templates (every template is left out once), and for actions matched to the descriptions by sentences, above the
paper's threshold and above one that is calibrated on other templates. Beside them milestones that are bad on purpose,
and the paper's figures. A verdict by the rules of ``waymark milestones validate`` stands with each; the benchmark fails
where bad ones are accepted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import Recording, met, option_parser
from cluster.display.milestone_table import show_calibration, show_validity
from cluster.errors import RunError
from cluster.milestones.calibration import MatchingCalibration, calibrate_matching
from cluster.milestones.validation import (
    BAD,
    FinalMilestones,
    SourceValidity,
    known_milestones,
    left_out,
    validate_milestones,
)
from cluster.recorded_run import RecordedRun
from cluster.run_folder.manifest import read_header
from judges.of_milestones.checker import Known, MilestoneChecker, train_checker
from judges.of_milestones.encoder import Remembering, encoder_named
from judges.of_milestones.features import Features
from judges.of_milestones.matching import THRESHOLD, match_episode
from judges.of_milestones.recorded import milestones_of_record
from learner.statistics import auc
from records.episodes import Source, Task, Trajectory

NAME = "milestones"
FOLDS = 4
PAPER = {"auroc": 0.84, "precision": 0.7917, "recall": 0.6032, "f1": 0.6847, "tau": 0.4585}
MATCHING_OF_PAPER = 0.813
"""Accuracy of matching above 0.75 on the 500 pairs of ADMIRE's paper (appendix B.4.2)."""
_PLAYED = (Source.ROLLOUT, Source.EVALUATION)


def main() -> None:
    """Validate every source on one run and write the verdicts."""
    parser = option_parser(NAME, __doc__)
    parser.add_argument("--run", type=Path, default=Path("runs/laptop"), help="a finished run; it is only read")
    options = parser.parse_args()
    recording = Recording(NAME, options.results)
    encoder = encoder_named()
    try:
        known, features = known_milestones(options.run, _PLAYED), Features(encoder)
    except RunError as error:
        sys.exit(str(error))
    features.learn((one.episode for one in known), (said for one in known for said in one.milestones))
    by_fold = _left_out_once(known, features)
    ends = {name: end for fold in by_fold for name, end in fold["ends"].items()}

    def trained(episode: Trajectory, task: Task) -> Sequence[bool]:
        return ends.get(episode.episode_id, ())

    remembered = Remembering(encoder)
    by_part = [calibrate_matching(known, remembered, FOLDS, part=part) for part in range(FOLDS)]

    def matched(threshold: float | None) -> FinalMilestones:
        def final(episode: Trajectory, task: Task) -> Sequence[bool]:
            above = threshold if threshold is not None else by_part[left_out(episode.template, FOLDS)].threshold
            said = [milestone.description for milestone in task.milestones]
            return tuple(match_episode(episode, said, remembered, above).reached[-1].tolist())

        return final

    others = {
        "trained checker, other templates": trained,
        "actions matched by sentences": matched(THRESHOLD),
        "actions matched above a calibrated threshold": matched(None),
    }
    found = validate_milestones(options.run, _PLAYED, others)
    show_validity(recording.console, found)
    show_calibration(recording.console, by_part[0])
    verdicts = [_verdict(by_part[0])]
    recording.write(
        {
            "run_commit": read_header(options.run)["versions"].get("commit"),
            "paper": PAPER,
            "sources": {one.source: _plain(one) for one in found},
            "checker": {"folds": FOLDS, "held_out": [{k: v for k, v in f.items() if k != "ends"} for f in by_fold]},
            "matching": [asdict(one) for one in by_part],
            "checks_on_the_record_agree": _agreement(options.run, known),
            "verdicts": verdicts,
        }
    )
    accepted = [one.source for one in found if one.source in BAD and not one.validity.rejected]
    if accepted:
        sys.exit(f"accepted although bad on purpose: {', '.join(accepted)}")


def _verdict(found: MatchingCalibration) -> str:
    """Say whether matching by sentences is as accurate here as in ADMIRE's paper, on templates left out."""
    target = f"Actions are matched to milestones as well as in ADMIRE's paper, {MATCHING_OF_PAPER} of the pairs"
    held = found.held_out
    if held is None:
        return f"{target}: too few templates to tell: missed"
    figures = f"{held.value:.3f} [{held.low:.3f}, {held.high:.3f}] above {found.threshold:g}"
    return f"{target}: {figures}: {met(held.low >= MATCHING_OF_PAPER)}"


def _left_out_once(known: Sequence[Known], features: Features) -> list[dict[str, Any]]:
    """Train on all templates but those of one part, for each part; return what is said of that part's episodes."""
    folds = []
    for fold in range(FOLDS):
        taught = [one for one in known if left_out(one.episode.template, FOLDS) != fold]
        asked = [one for one in known if left_out(one.episode.template, FOLDS) == fold]
        checker = MilestoneChecker(train_checker(taught, features), features)
        said = [checker.probabilities(one.episode, one.milestones)[-1] for one in asked]
        at = checker.trained.decision_threshold
        truth, likely = np.concatenate([one.reached[-1] for one in asked]), np.concatenate(said)
        folds.append(
            {
                "episodes": len(asked),
                "milestones_reached": float(truth.mean()),
                "agreement": float(((likely >= at) == truth).mean()),
                "auc": auc(likely, truth.astype(np.float64)),
                "decision_threshold": at,
                "ends": {
                    one.episode.episode_id: tuple((row >= at).tolist()) for one, row in zip(asked, said, strict=True)
                },
            }
        )
    return folds


def _agreement(run: Path, known: Sequence[Known]) -> dict[str, float]:
    """Return how often the checks on recorded pages say what was played: of all values, and of whole episodes' ends."""
    tasks = RecordedRun(run).tasks
    again = [milestones_of_record(one.episode, tasks[one.episode.episode_id].milestones) for one in known]
    values = np.concatenate([(a == one.reached).ravel() for a, one in zip(again, known, strict=True)])
    ends = [bool((a[-1] == one.reached[-1]).all()) for a, one in zip(again, known, strict=True)]
    return {"values": float(values.mean()), "ends": float(np.mean(ends))}


def _plain(one: SourceValidity) -> dict[str, Any]:
    verdict = "rejected" if one.validity.rejected else "accepted"
    return {"verdict": verdict, "left_out": one.left_out, **asdict(one.validity)}


if __name__ == "__main__":
    main()
