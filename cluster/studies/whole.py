"""A study from its registration to its page, for the command line and for benchmarks.

Owns the order. Invariants: predictions are registered before anything is run; Ctrl-C and SIGTERM end the runs first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cluster.boundary import disk_errors, interruptible
from cluster.errors import RecipeError, RunStopped
from cluster.studies.design import StudyFile
from cluster.studies.page import write_study
from cluster.studies.results import StudyResults, results_of
from cluster.studies.runs import StudyRuns, Told, register, run_study


@dataclass(frozen=True, slots=True)
class Conducted:
    """A study's runs and what came of them."""

    runs: StudyRuns
    results: StudyResults


def conduct(study: StudyFile, out: Path, records: Path, jobs: int, told: Told, *, only_read: bool = False) -> Conducted:
    """Run what has no record yet, ``jobs`` runs at a time, write the page to ``out`` and return what came out.

    Raises:
        RunStopped: no run of an arm is complete; the same command goes on.
        RunInterrupted: a signal stopped it; the same command goes on.
        RecipeError: the study of these records predicts something else.
        ManifestError: a record cannot be read, is of a run with other settings, or was made without its predictions.
    """
    for option, folder in (("--out", out), ("--records", records)):
        if folder.exists() and not folder.is_dir():
            raise RecipeError(f"{option}: expected a folder, or nothing yet, found a file: {folder}; name another")
    said = f"stopped; what is complete is in {out}. Start the same command again to go on from there."
    with interruptible(said), disk_errors(out, "start the same command again to go on from there"):
        registered = register(study, out, records)
        runs = run_study(study, out, records, jobs, told, only_read=only_read)
    if not runs.arms:
        raise RunStopped(f"{out}: no run of an arm is complete: {next(iter(runs.failed.values()), 'none was begun')}")
    results = results_of(study.design, runs, registered)
    write_study(out, results)
    return Conducted(runs, results)
