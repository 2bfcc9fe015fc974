"""The command about offline data: ``waymark data import``.

Owns its arguments and help. Invariant: as in ``cluster.cli``, it imports what it needs when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster.commands.loading import RecipeArgument, SetOption, load_run
from cluster.errors import RecipeError, RunError
from records.terminal import printable

data_app = typer.Typer(help="Offline data: trajectories that others recorded.", no_args_is_help=True)


@data_app.command(name="import")
def import_offline(
    recipe: RecipeArgument,
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="A .json or .jsonl file of WebRL, or a folder of VAB-WebArena-Lite."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to make. Default: the recipe's warm_start.data.")
    ] = None,
    overrides: SetOption = None,
) -> None:
    """Turn offline trajectories into data for the recipe's policy; exit code 1 when none of them can be used."""
    from rich.console import Console
    from rich.text import Text

    from cluster.data_import import import_data
    from cluster.display.import_table import show_import

    loaded, _ = load_run(recipe, None, overrides)
    folder = out or (loaded.data_path if loaded.warm_start.data else None)
    if folder is None:
        raise RecipeError("name the folder to make: --out FOLDER, or warm_start.data in the recipe")
    console = Console()
    with console.status("Importing"):
        report = import_data(loaded, source, folder)
    show_import(console, report)
    if not report.episodes:
        raise RunError(f"nothing of {source} can be used, see above; no folder was made")
    console.print(Text(printable(f"Data: {folder}. A recipe names it as warm_start.data.")), soft_wrap=True)
