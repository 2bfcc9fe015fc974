"""The recipe of an evaluation, made from that of a run.

Owns ``as_evaluated``. Invariant: nothing in it asks for a learner, or for what only training needs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cluster.errors import RecipeError
from cluster.recipe.recipe import Recipe
from learner.settings import AdapterSettings
from records.bounds import SettingError
from rollout_workers.settings import RolloutSettings


def as_evaluated(recipe: Recipe, *, policy: Path, split: str, passes: int = 1, steps_factor: int = 1) -> Recipe:
    """Return the recipe of an evaluation, which is what a machine must be ready for: nothing is learned.

    The policy folder ``policy`` plays one split, greedily or, with several passes, sampled. Each episode may have
    ``steps_factor`` times as much time, for as many more actions (``cluster.evaluation``).

    Raises:
        RecipeError: the recipe's temperature is none for several passes, or its waits none for so many actions.
    """
    try:
        settings = replace(recipe.run.evaluation, splits=(split,), passes=passes)
    except SettingError as error:
        raise RecipeError(f"--passes {passes}: run.evaluation.{error}; set it with --set") from error
    try:
        rollout = longer(recipe.rollout, steps_factor)
    except SettingError as error:
        raise RecipeError(f"--steps-factor {steps_factor}: rollout.{error}") from error
    update = {
        "run": replace(recipe.run, evaluation=settings, phases=0),
        "warm_start": replace(recipe.warm_start, checkpoint="", data=""),
        # There is no learner to send weights.
        "policy": replace(recipe.policy, model=str(policy), revision="", publication="file"),
        # As a snapshot is taken, by one process.
        "learner": replace(recipe.learner, adapters=AdapterSettings(), precision="float32", ranks=1),
        "rollout": rollout,
    }
    return recipe.model_copy(update=update)


def longer(rollout: RolloutSettings, factor: int) -> RolloutSettings:
    """Return the settings under which an episode has ``factor`` times the actions, and the time for them."""
    return replace(
        rollout,
        max_steps=factor * rollout.max_steps,
        episode_deadline_s=factor * rollout.episode_deadline_s,
        stall_timeout_s=factor * rollout.stall_timeout_s,
    )
