"""The commands about environments: ``waymark env audit`` and ``waymark env check``.

Owns their arguments and help. Invariant: as in ``cluster.cli``, each command imports what it needs when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from cluster.commands.numbers import seconds_option
from cluster.errors import MissingError, RecipeError, RunError

env_app = typer.Typer(help="Environments: the built-in ones and your own.", no_args_is_help=True)


@env_app.command(name="audit")
def audit_environment(
    where: Annotated[
        str, typer.Argument(metavar="URL|ENV", help="A page's address, or an environment with a browser.")
    ],
    tasks: Annotated[int, typer.Option(min=1, help="Start pages that are looked at, of an environment.")] = 3,
    options: Annotated[str, typer.Option(help="Options of the environment's host, as a JSON object.")] = "{}",
    deadline: Annotated[float, seconds_option(1.0, "Longest time for one page, in seconds.")] = 60.0,
) -> None:
    """Hold what agents are shown of pages against a second opinion; exit code 1 where something is missing."""
    import json

    from rich.console import Console

    from cluster.preflight.page_audit import audit_pages
    from cluster.preflight.page_audit_table import show_audits
    from records.failures import EpisodeFailed

    try:
        found = audit_pages(where, tasks=tasks, deadline_s=deadline, options=json.loads(options))
    except ValueError as error:
        raise RecipeError(str(error)) from error
    except EpisodeFailed as error:
        raise MissingError(f"{where}: no page to look at: {error}") from error
    show_audits(Console(), found)
    missing = sum(len(page.audit.missing) for page in found)
    if missing:
        raise RunError(f"{missing} elements that a person could use are not offered, see above")


@env_app.command(name="check")
def check_environment(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A built-in environment, an installed one's name, or module:name.")
    ],
    seconds: Annotated[float, seconds_option(0.1, "How long each measurement takes, in seconds.")] = 5.0,
    options: Annotated[str, typer.Option(help="Options of the environment's host, as a JSON object.")] = "{}",
    deadline: Annotated[float, seconds_option(0.1, "Longest wait for one point of the contract, in seconds.")] = 120.0,
    tasks: Annotated[int, typer.Option(min=1, help="Training tasks that it is examined on, of unlike templates.")] = 2,
) -> None:
    """Run an environment through its contract and measure it; exit code 1 when a point is not kept."""
    import json

    from rich.console import Console

    from cluster.preflight.environment import check_environment_kind
    from cluster.preflight.environment_table import show_findings
    from records.failures import EpisodeFailed

    try:
        found = check_environment_kind(
            path, tasks=tasks, seconds=seconds, options=json.loads(options), deadline_s=deadline
        )
    except ValueError as error:
        raise RecipeError(str(error)) from error
    except EpisodeFailed as error:
        raise MissingError(f"{path}: its host did not start: {error}") from error
    show_findings(Console(), found)
    if found.broken:
        raise RunError(f"{path} breaks {found.broken} of {len(found.points)} points of the contract, see above")
