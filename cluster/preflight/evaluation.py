"""What ``waymark eval`` is told on its command line, looked at before the machine: the policy, the split, the place.

Owns ``require_evaluable`` and ``require_shared_place``. Invariant: what is wrong is said by the option's name, and
nothing is started or fetched for it. Imports neither torch nor Ray.
"""

from __future__ import annotations

from pathlib import Path

from cluster.errors import RecipeError, RunError
from cluster.preflight.start import check_start
from cluster.recipe.recipe import Recipe
from cluster.recipe.run_settings import SPLITS
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.manifest import FILE_NAME as MANIFEST
from cluster.task_sets import TaskSets
from policy.hub import names_folder
from policy.settings import TINY
from records.checks import Status

_NAME = "name OUT/trained of a run, another model's folder, or a model on the Hugging Face hub"


def require_evaluable(evaluated: Recipe) -> None:
    """Raise ``RecipeError`` where the recipe of an evaluation (``as_evaluated``) has no policy or no such split."""
    _require_policy(evaluated)
    _require_split(evaluated)


def require_shared_place(evaluated: Recipe, keep: Path | None) -> None:
    """Raise ``RecipeError`` where a cluster is joined and no folder is named beside which its nodes could work."""
    address = evaluated.run.resources.address
    if address and keep is None:
        raise RecipeError(
            f"--out: the evaluation joins the Ray cluster at {address}, and works beside its result: name a new folder "
            "in one that every node sees, such as /shared/evals/mine; to evaluate on this machine alone, unset "
            "RAY_ADDRESS and leave run.resources.address empty"
        )


def _require_policy(evaluated: Recipe) -> None:
    """Refuse what is no folder of a policy; a model on the hub is asked for when the evaluation starts."""
    name = evaluated.policy.model
    folder = Path(name)
    if name == TINY and not folder.is_dir():
        raise RecipeError(f"--policy {name}: is what a recipe makes a policy of, not a policy; {_NAME}")
    if not names_folder(name):
        return
    if not folder.is_dir():
        raise RecipeError(f"--policy {name}: is {'no folder' if folder.exists() else 'not there'}; {_NAME}")
    if (folder / MANIFEST).is_file() and not (folder / "config.json").exists():
        trained = RunFolders(folder).trained
        policy = f"its policy is {trained}" if trained.is_dir() else "it has no policy before its end"
        raise RecipeError(f"--policy {name}: is the folder of a run; {policy}")
    for check in check_start(evaluated):
        if check.name == "policy.model" and check.status is Status.FAIL:
            raise RecipeError(f"--policy: {check.found}; {_NAME}")


def _require_split(evaluated: Recipe) -> None:
    """Refuse a split that has no tasks where others have some; whatever else is lacking is looked at with the rest."""
    (split,) = evaluated.run.evaluation.splits
    try:
        tasks = TaskSets(evaluated)
    except (RunError, LookupError, OSError, ValueError):
        return
    found = _found_wrong(tasks, split)
    if found and not all(_found_wrong(tasks, other) for other in SPLITS):
        raise RecipeError(f"--split {split}: {found}")


def _found_wrong(tasks: TaskSets, split: str) -> str:
    """Return why a split has no task, an empty text where it has one."""
    try:
        tasks.first(split)
    except (LookupError, OSError, ValueError) as error:
        return str(error.args[0])
    return ""
