"""The command ``waymark study``.

Owns its arguments and help. Invariant: as in ``cluster.cli``, it imports what it needs when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster.errors import RunStopped
from records.terminal import printable

study_app = typer.Typer()


@study_app.command()
def study(
    file: Annotated[Path, typer.Argument(metavar="STUDY", help="A study file, such as studies/chains.yaml.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The study's folder. Default: runs/studies/NAME, NAME from the file.")
    ] = None,
    records: Annotated[
        Path | None, typer.Option("--records", help="Where runs leave what is compared. Default: OUT/records.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    only_read: Annotated[bool, typer.Option("--only-read", help="Start nothing; tell of what is complete.")] = False,
) -> None:
    """Train all arms of a study over its seeds, and hold the outcome against what was predicted."""
    from rich.console import Console
    from rich.text import Text

    from cluster.boundary import interruptible
    from cluster.display.study_table import show_study
    from cluster.study import register, run_study
    from cluster.study_design import read_study
    from cluster.study_page import PAGE, RESULT, write_study
    from cluster.study_results import results_of

    console = Console()
    design = read_study(file)
    folder = out or Path("runs") / "studies" / design.design.name
    kept = records or folder / "records"
    registered = register(design, kept)
    said = f"stopped; what is complete is in {folder}. Start the same command again to go on from there."
    with interruptible(said):
        runs = run_study(
            design, folder, kept, jobs,
            lambda line: console.print(Text(printable(line)), soft_wrap=True), only_read=only_read,
        )  # fmt: skip
    if not runs.arms:
        raise RunStopped(
            f"{folder}: no run of an arm is complete: {next(iter(runs.failed.values()), 'none was begun')}"
        )
    results = results_of(design.design, runs, registered)
    write_study(folder, results)
    show_study(console, results)
    console.print(Text(printable(f"Written: {folder / RESULT}, {folder / PAGE}")), soft_wrap=True)
    if runs.failed:
        raise RunStopped(f"{len(runs.failed)} runs are missing, see {folder / PAGE}; the same command tries them again")
