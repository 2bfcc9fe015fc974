"""The commands that look at what was played: ``waymark analyze``.

Owns their arguments and help. Invariant: as in ``cluster.cli``, each command imports what it needs when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster.errors import RecipeError
from records.terminal import printable

analysis_app = typer.Typer()


@analysis_app.command()
def analyze(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Run folders, or folders of `eval --out`.")],
    page: Annotated[Path | None, typer.Option(help="Also write one page about all of them to this file.")] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a setting of the rules, such as same_actions=5."),
    ] = None,
) -> None:
    """Say how episodes fail: modes, key steps, milestones by step; writes analysis.json and analysis.html into DIR."""
    from rich.console import Console
    from rich.text import Text

    from analysis.failure_page import render_failures
    from analysis.settings import AnalysisSettings
    from cluster.display.failure_table import failure_comparison, failure_table
    from cluster.failure_analysis import PAGE, RESULT
    from cluster.failure_analysis import analyze as run
    from cluster.run_folder.durable import write_atomic
    from plugs.options import read_options

    given = [override.partition("=") for override in overrides or ()]
    try:
        whole = {key: int(value) for key, _, value in given}
        settings = read_options(AnalysisSettings, whole, "--set")
    except ValueError as error:
        raise RecipeError(f"--set: {error}") from error
    console = Console()
    reports = run(folders, settings)
    for folder, report in zip(folders, reports, strict=True):
        console.print(failure_table(report))
        console.print(Text(printable(f"Written: {folder / RESULT}, {folder / PAGE}")), soft_wrap=True)
    if len(reports) > 1:
        console.print(failure_comparison(reports))
    if page is not None:
        write_atomic(page, render_failures("Failures side by side", reports))
