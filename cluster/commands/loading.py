"""What commands that take a recipe share: its argument, its overrides, loading it, and whether this machine is ready.

Owns what ``RAY_ADDRESS`` means to them. Invariant: as in ``cluster.cli``, what is needed is imported when it is used.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cluster.errors import MissingError, RecipeError

if TYPE_CHECKING:
    from cluster.recipe.recipe import Recipe

RecipeArgument = Annotated[
    Path, typer.Argument(metavar="RECIPE", help="A recipe, such as cluster/recipes/laptop.yaml.")
]
Overrides = list[str] | None
_NOT_JOINED = {"http://": "a dashboard", "https://": "a dashboard", "ray://": "Ray's client, which drives no run"}
"""What ``RAY_ADDRESS`` may begin with where no driver can join, and whose address that is."""


def set_option(such_as: str) -> Any:
    """Return the option ``--set``, which overrides a recipe's settings; its help gives an example."""
    return typer.Option("--set", metavar="KEY=VALUE", help=f"Override one setting, such as {such_as}.")


SetOption = Annotated[Overrides, set_option("run.phases=2; may be repeated")]


def load_run(path: Path, out: Path | None, overrides: Overrides) -> tuple[Recipe, Path]:
    """Return the recipe and the run folder."""
    from cluster.recipe.recipe import load_recipe

    recipe = load_recipe(path, overrides or ())
    joined = os.environ.get("RAY_ADDRESS", "")
    if joined and not recipe.run.resources.address:
        recipe = load_recipe(path, [*(overrides or ()), f"run.resources.address={_cluster_to_join(joined)}"])
    return recipe, out or Path("runs") / recipe.run.name


def _cluster_to_join(address: str) -> str:
    """Return the address of a cluster to join, from what the environment says."""
    whose = next((said for scheme, said in _NOT_JOINED.items() if address.startswith(scheme)), "")
    if whose:
        raise RecipeError(
            f"RAY_ADDRESS is {address}, an address of {whose}: hand the run to that cluster with `waymark submit` "
            "(--address takes its dashboard's), or unset it to run here"
        )
    return address


def require_ready(recipe: Recipe, out: Path, *, learns: bool = True) -> None:
    """Raise ``MissingError`` naming everything this machine lacks for the recipe; see ``machine_checks``."""
    from cluster.preflight.doctor import machine_checks
    from records.checks import Status

    missing = [entry for entry in machine_checks(recipe, out, learns=learns) if entry.status is Status.FAIL]
    if missing:
        raise MissingError("\n".join(f"{entry.name}: {entry.found}. {entry.advice}".rstrip() for entry in missing))
