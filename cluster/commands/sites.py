"""The commands about the embedded sites: ``waymark sites serve`` and ``waymark sites tasks``.

Owns their arguments and help. Invariant: as in ``cluster.cli``, each command imports what it needs when it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cluster.errors import RecipeError
from records.terminal import printable

if TYPE_CHECKING:
    from rich.table import Table

MOST_TASKS = 10_000
"""Tasks that are printed at most: to draw one takes a millisecond or a few, and some splits have no end in sight."""
_WIDTHS = (18, 7, 10, None)
"""Characters of the columns: three sites, two numbers, and an instruction."""

sites_app = typer.Typer(help="The embedded sites.", no_args_is_help=True)


@sites_app.command()
def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on, on this machine only.")] = 8000,
    seed: Annotated[int, typer.Option(help="Seed of the sites' data.")] = 0,
) -> None:
    """Serve the embedded sites for a person with a browser, until Ctrl-C."""
    from rich.console import Console
    from rich.text import Text

    from sites.app import create_app
    from sites.registry import SITES
    from sites.server import bound, serve_forever

    try:
        listening = bound(port)
    except OSError as error:
        raise RecipeError(f"--port {port}: {error.strerror}; name another port") from error
    app, console = create_app(seed), Console()
    for name, site in SITES.items():
        line = f"{name:6} http://{name}.localhost:{port}/"
        if site.account:
            user, password = site.account(app.state.sessions.data[name])
            line += f"  log in as {user} with {password}"
        console.print(Text(line))
    serve_forever(app, listening)


@sites_app.command(name="tasks")
def show_tasks(
    family: Annotated[str, typer.Option(help="templates, or chains.")] = "templates",
    split: Annotated[str, typer.Option(help="The split to draw from.")] = "train",
    count: Annotated[int, typer.Option(min=1, max=MOST_TASKS, help="How many tasks, where there are as many.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    sites: Annotated[
        str, typer.Option(help="Sites (and for templates collections), with commas between them. Default: all sites.")
    ] = "",
) -> None:
    """Print some tasks of the embedded sites as they are drawn: sites, expert's actions, milestones, instruction."""
    from itertools import islice

    from rich.console import Console
    from rich.text import Text

    from environments.embedded.kind import embedded_tasks
    from sites.registry import SITES
    from sites.settings import SitesSettings

    try:
        settings = SitesSettings(names=tuple(sites.split(",")) if sites else tuple(SITES), family=family)
        tasks = embedded_tasks(settings).drawn(seed, split)
    except (ValueError, KeyError) as error:
        raise RecipeError(str(error.args[0])) from error
    console, shown = Console(), 0
    console.print(_row("sites", "actions", "milestones", "instruction", style="bold"))
    for task in islice(tasks, count):
        numbers = (str(task.horizon), str(len(task.milestones)))
        console.print(_row(", ".join(task.sites), *numbers, printable(task.intent)))
        shown += 1
    if shown < count:
        line = f"The split {split} has {shown} different tasks here, and {count} were asked for."
        Console(stderr=True).print(Text(line), soft_wrap=True)


def _row(*cells: str, style: str = "") -> Table:
    """Return a row whose columns are as wide as those of every other row; the last one takes the rest of the line."""
    from rich.table import Table
    from rich.text import Text

    row = Table.grid(padding=(0, 2))
    for width in _WIDTHS:
        row.add_column(width=width)
    row.add_row(*map(Text, cells), style=style)
    return row
