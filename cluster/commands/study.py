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
    file: Annotated[Path, typer.Argument(metavar="STUDY", help="Such as benchmarks/studies/chains.yaml.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The study's folder. Default: runs/studies/NAME, NAME from the file.")
    ] = None,
    records: Annotated[
        Path | None, typer.Option("--records", help="Folder of finished runs' records. Default: OUT/records.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    only_read: Annotated[bool, typer.Option("--only-read", help="Start nothing; tell of what is complete.")] = False,
) -> None:
    """Train all arms of a study over its seeds, and hold the outcome against what was predicted."""
    from rich.console import Console
    from rich.text import Text

    from cluster.display.study_table import show_study
    from cluster.studies.design import read_study
    from cluster.studies.page import PAGE, RESULT
    from cluster.studies.whole import conduct

    console = Console()

    def say(line: str) -> None:
        console.print(Text(printable(line)), soft_wrap=True)

    design = read_study(file)
    folder = out or Path("runs") / "studies" / design.design.name
    conducted = conduct(design, folder, records or folder / "records", jobs, say, only_read=only_read)
    show_study(console, conducted.results)
    say(f"Written: {folder / RESULT}, {folder / PAGE}")
    if failed := conducted.results.failed:
        raise RunStopped(f"{len(failed)} runs are missing, see {folder / PAGE}; the same command tries them again")
