"""The commands about the embedded sites: ``waymark sites serve`` and ``waymark sites tasks``.

Owns their arguments and help. Invariant: as in ``cluster.cli``, each command imports what it needs when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from cluster.errors import RecipeError
from records.terminal import printable

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
    count: Annotated[int, typer.Option(min=1, help="How many tasks.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    sites: Annotated[
        str, typer.Option(help="Sites (and for templates collections), with commas between them. Default: all sites.")
    ] = "",
) -> None:
    """Print some tasks of the embedded sites: sites, actions of the expert, milestones, instruction."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from environments.kinds import KINDS
    from sites.registry import SITES
    from sites.settings import SitesSettings

    try:
        settings = SitesSettings(names=tuple(sites.split(",")) if sites else tuple(SITES), family=family)
        tasks = KINDS.find("embedded").tasks(settings).task_set(seed, split, count)
    except (ValueError, KeyError) as error:
        raise RecipeError(str(error.args[0])) from error
    table = Table.grid(padding=(0, 2))
    table.add_row("sites", "actions", "milestones", "instruction", style="bold")
    for task in tasks:
        numbers = (str(task.horizon), str(len(task.milestones)))
        table.add_row(", ".join(task.sites), *numbers, Text(printable(task.intent)))
    Console().print(table)
