"""``waymark data import``: offline trajectories become data that a recipe's ``warm_start.data`` can name.

Owns what the command does. Invariant: the folder appears whole, or not at all.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from cluster.boundary import disk_errors
from cluster.errors import MissingError, RecipeError
from cluster.recipe.recipe import Recipe
from cluster.run_folder.durable import put_folder, require_new, scratch_folder
from cluster.run_folder.named_data import start_tokenizer
from cluster.task_sets import TaskSets
from offline.folder import DataReport, MadeFor, write_data
from offline.forms import read_source
from offline.left_out import LeftOuts
from offline.records import SourceError
from offline.trajectories import TrajectoryMaker
from policy.formats import format_of


def import_data(recipe: Recipe, source: Path, out: Path) -> DataReport:
    """Import ``source`` for the policy of a recipe into the folder ``out``; return what it holds.

    Where nothing can be used, the report says why and there is no folder.

    Raises:
        RecipeError: ``out`` is there already, or the source or the recipe cannot be used.
        MissingError: the recipe's model or its tasks are not there.
    """
    require_new(out)
    settings, left_out, scratch = recipe.policy, LeftOuts(), scratch_folder(out)
    tokenizer, held_out = start_tokenizer(recipe), _held_out(recipe)
    maker = TrajectoryMaker(tokenizer, format_of(settings), settings, held_out, left_out)
    try:
        form, episodes = read_source(source, left_out)
        with disk_errors(out, "start the same command again"):
            scratch.mkdir()
            report = write_data(
                scratch,
                (made for episode in episodes if (made := maker.trajectory(episode)) is not None),
                source=str(source),
                form=form,
                made_for=MadeFor.of(tokenizer, settings),
                left_out=left_out,
            )
            if report.episodes:
                put_folder(scratch, out)
    except SourceError as error:
        raise RecipeError(str(error)) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return report


def _held_out(recipe: Recipe) -> set[str]:
    """Return the instructions of the tasks that the recipe evaluates on."""
    try:
        tasks = TaskSets(recipe)
        return {task.intent for split in recipe.run.evaluation.splits for task in tasks.split(split)}
    except (LookupError, ValueError) as error:
        raise MissingError(f"the tasks of run.evaluation, which must stay out of the data: {error.args[0]}") from error
