"""The policies that a study left: each seed's start, and the last policy of each arm. They play again.

Owns where those policies and their new evaluations lie, and how they are named on the command line. Invariant: what was
played again is never done twice, and stays when the run that made the policy is removed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analysis.comparison import Outcomes
from analysis.predictions import Measure
from analysis.routes import Route
from benchmarks.recording import RESULTS, option_parser
from benchmarks.runs import FOLDER, evaluate
from benchmarks.study import STUDIES
from cluster.errors import RunError
from cluster.failure_analysis import episodes_of, routes_of
from cluster.studies.design import START, StudyFile, read_study
from cluster.studies.results import outcomes_by_arm
from cluster.studies.runs import StudyRuns, run_study


@dataclass(frozen=True)
class StudyPolicies:
    """A study's policies and the runs that made them, as they are recorded. ``out`` is OUT/STUDY."""

    study: StudyFile
    out: Path
    runs: StudyRuns

    @classmethod
    def of(cls, options: argparse.Namespace, told: Callable[[str], None]) -> StudyPolicies:
        """Return those of the study that ``study_options`` name; nothing is trained. What is wrong with it ends all."""
        out, records = options.out / options.study, options.records / options.study
        try:
            study = read_study(STUDIES / f"{options.study}.yaml")
            return cls(study, out, run_study(study, out, records, 1, told, only_read=True))
        except RunError as error:
            sys.exit(str(error))

    @property
    def arms(self) -> list[str]:
        """The arms that run on all of the study's seeds."""
        return [name for name, arm in self.study.design.arms.items() if arm.seeds is None]

    def trained(self, name: str, seed: int) -> Path:
        """Return the folder of a policy, which need not be there any more."""
        return self.out / self._run(name, seed) / "trained"

    def played(self, name: str, split: str, factor: int = 1) -> dict[int, list[Route]]:
        """Return what the policies of an arm, or the starts, do on a split, greedily, by seed; see the invariant.

        A task allows ``factor`` times its actions. Seeds of which nothing is left are not there; where that is all of
        them, the benchmark ends and says so.
        """
        arm, found = self._arm(name), dict[int, list[Route]]()
        for seed in sorted(self.runs.arms.get(arm, {})):
            policy = self.trained(name, seed)
            folder = self.out / "again" / f"{split}-x{factor}" / self._run(name, seed)
            if policy.is_dir() or folder.is_dir():
                settings = self.study.settings_of(arm, seed, {}, [split])
                evaluate(self.study.recipe, policy.resolve(), split, folder, settings, factor)
                found[seed] = list(routes_of(episodes_of(folder)))
        if not found:
            sys.exit(f"expected policies of {name}, found none in {self.out}; run the study first")
        return found

    def recorded(self, name: str, split: str) -> dict[int, Outcomes]:
        """Return what the study recorded of these policies on a split, by seed."""
        found = outcomes_by_arm(self.runs, Measure.SUCCESS, split).get(name, {})
        return {seed: of_seed[split] for seed, of_seed in found.items() if of_seed[split]}

    def _run(self, name: str, seed: int) -> str:
        return f"start/seed-{seed}" if name == START else f"arms/{name}/seed-{seed}"

    def _arm(self, name: str) -> str:
        """Return the arm whose recipe a policy plays under: a start has those of all arms."""
        return self.arms[0] if name == START else name


def study_options(name: str, description: str, study: str) -> argparse.ArgumentParser:
    """Return a parser with the options of a benchmark that lets a study's policies play again."""
    parser = option_parser(name, description)
    parser.add_argument("--study", default=study, help="the study: NAME of studies/NAME.yaml")
    parser.add_argument("--out", type=Path, default=FOLDER / "studies", help="folder of the study's runs")
    parser.add_argument("--records", type=Path, default=RESULTS / "studies", help="folder of the runs' records")
    parser.add_argument("--arms", nargs="*", help="arms; those that run on all of the study's seeds if left out")
    return parser
