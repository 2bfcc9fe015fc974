"""A study from its registration to its page, for the command line and for benchmarks.

Owns the order. Invariants: predictions are registered before anything is run; Ctrl-C and SIGTERM end the runs first.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from cluster.boundary import disk_errors, interruptible
from cluster.errors import RecipeError, RunStopped
from cluster.recipe.recipe import load_recipe
from cluster.studies.design import StudyFile
from cluster.studies.page import write_study
from cluster.studies.processes import Say
from cluster.studies.registration import register
from cluster.studies.results import StudyResults, results_of
from cluster.studies.runs import StudyRuns, run_study
from cluster.task_sets import TaskSets


@dataclass(frozen=True, slots=True)
class Conducted:
    """A study's runs and what came of them."""

    runs: StudyRuns
    results: StudyResults


def conduct(study: StudyFile, out: Path, records: Path, jobs: int, say: Say, *, only_read: bool = False) -> Conducted:
    """Run what has no record yet, ``jobs`` runs at a time, write the page to ``out`` and return what came out.

    Raises:
        RunStopped: no run of an arm is complete; the same command goes on.
        RunInterrupted: a signal stopped it; the same command goes on.
        RecipeError: the study of these records predicts something else, or a group names a template that no task has
            that is evaluated; that is known before anything is registered.
        ManifestError: a record cannot be read, is of a run with other settings, or was made without its predictions.
    """
    for option, folder in (("--out", out), ("--records", records)):
        if folder.exists() and not folder.is_dir():
            raise RecipeError(f"{option}: expected a folder, or nothing yet, found a file: {folder}; name another")
    said = f"stopped; what is complete is in {out}. Start the same command again to go on from there."
    with interruptible(said), disk_errors(out, "start the same command again to go on from there"):
        if not only_read:
            _require_groups(study)
        registered = register(study, out, records)
        runs = run_study(study, out, records, jobs, say, only_read=only_read)
    if not runs.arms:
        raise RunStopped(f"{out}: no run of an arm is complete: {next(iter(runs.failed.values()), 'none was begun')}")
    results = results_of(study.design, runs, registered)
    write_study(out, results)
    return Conducted(runs, results)


def _require_groups(study: StudyFile) -> None:
    """Refuse a group whose template none of the tasks has that the arms are evaluated on.

    All arms have the same tasks, so those of the first are drawn. A group of which some split has none is no error.
    """
    design = study.design
    if not design.groups:
        return
    arm = next(iter(design.arms))
    recipe = load_recipe(study.recipe, study.settings_of(arm, design.seeds_of(arm)[0], {}, design.splits))
    drawn = TaskSets(recipe)
    try:
        templates = sorted({task.template for split in design.splits for task in drawn.split(split)})
    except (LookupError, ValueError) as error:
        raise RecipeError(f"splits: {error.args[0]}") from error
    for name, template in design.groups.items():
        if template not in templates:
            near = get_close_matches(template, templates, 3, 0.0)
            raise RecipeError(
                f"groups: {name}: no task that is evaluated has the template {template!r}; there are {', '.join(near)}"
            )
