"""The commands that look at what was played: ``waymark analyze``, ``waymark gate``, ``waymark critic``.

Owns their arguments and help. Invariant: as in ``cluster.cli``, each command imports what it needs when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster.commands.numbers import number_option
from cluster.commands.targets import file_option, json_option, new_folder_option
from cluster.errors import RecipeError
from records.terminal import printable

analysis_app = typer.Typer()
critic_app = typer.Typer(help="The critics of a run.", no_args_is_help=True)
analysis_app.add_typer(critic_app, name="critic")


@analysis_app.command()
def analyze(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Run folders, or folders of `eval --out`.")],
    page: Annotated[Path | None, file_option("--page", "Also write one page about all of them to this file.")] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a setting of the rules, such as same_actions=5."),
    ] = None,
    explain: Annotated[
        str, typer.Option(metavar="MODEL", help="Language model that says why, by its name in judges.llm.models.")
    ] = "",
    explained: Annotated[int, typer.Option(min=1, help="Failures of each DIR that it is asked about.")] = 20,
    recipe: Annotated[
        Path | None, typer.Option(help="Recipe that describes the model. Default: that of the run.")
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
    from cluster.failure_explanation import Asking, explaining
    from cluster.run_folder.durable import write_atomic
    from plugs.options import read_options

    given = [override.partition("=") for override in overrides or ()]
    if wrong := [key for key, equals, _ in given if not equals]:
        raise RecipeError(f"--set expects key=value, found {wrong[0]!r}")
    try:
        settings = read_options(AnalysisSettings, {key: value for key, _, value in given}, "")
    except ValueError as error:
        raise RecipeError("\n".join(f"--set: {line}" for line in str(error).splitlines())) from error
    console = Console()
    if explain:
        asking = Asking(explain, explained, recipe)
        for folder in folders:
            asking.recipe_of(folder)  # nothing is written where one is refused
        with console.status("Asking") as status:
            words = explaining(asking, lambda done, total: status.update(f"{done}/{total}"), console.print)
            reports = run(folders, settings, words)
    else:
        reports = run(folders, settings)
    for folder, report in zip(folders, reports, strict=True):
        console.print(failure_table(report))
        console.print(Text(printable(f"Written: {folder / RESULT}, {folder / PAGE}")), soft_wrap=True)
    if len(reports) > 1:
        console.print(failure_comparison(reports))
    if page is not None:
        write_atomic(page, render_failures("Failures side by side", reports))


@analysis_app.command()
def gate(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A run folder, or a folder of `eval --out`.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The evaluation that must not be worse.")],
    longer_than: Annotated[int, typer.Option(min=0, help="Compare on tasks of more steps than this.")] = 10,
    margin: Annotated[float, number_option(0.0, 1.0, "How much worse NEW may be; 0: it has to be better.")] = 0.1,
    level: Annotated[float, number_option(0.5, 0.999, "Confidence of the limits, each by itself.")] = 0.95,
    json_file: Annotated[Path | None, json_option("the result")] = None,
) -> None:
    """Compare two evaluations on long tasks; exit code 1 when NEW is worse, 3 when there are too few tasks to tell."""
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.text import Text

    from analysis.gate import GateVerdict
    from cluster.gate import Regression, TooFewTasks, compare
    from cluster.run_folder.durable import write_atomic

    found = compare(old, new, longer_than=longer_than, margin=margin, level=level)
    if json_file is not None:
        write_atomic(json_file, json.dumps(asdict(found), indent=1) + "\n")
    sentence = f"{found.verdict}, tasks of more than {longer_than} steps: {found.sentence}"
    if found.verdict is GateVerdict.REGRESSION:
        raise Regression(sentence)
    if found.verdict is GateVerdict.TOO_FEW:
        raise TooFewTasks(sentence)
    Console().print(Text(printable(sentence)), soft_wrap=True)


@critic_app.command(name="export")
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder with a checkpoint and episodes.")],
    out: Annotated[Path, new_folder_option("The new folder to make.")],
    critic: Annotated[str, typer.Option(help="Which critic.")] = "potential",
    max_error: Annotated[
        float, number_option(0.0, 1.0, "Largest difference between an answer and the critic's own.")
    ] = 0.05,
) -> None:
    """Export a critic to ONNX, to be asked beside an agent; exit code 1 where the export answers otherwise."""
    from rich.console import Console
    from rich.text import Text

    from cluster.critic_export import export_critic

    exported = export_critic(run, out, critic, max_error)
    for precision, error in exported.largest_error.items():
        line = f"{precision}: differs by {error:.5f} at most, {exported.mean_error[precision]:.5f} on average"
        Console().print(Text(f"{line}, on {exported.states} recorded states"))
    Console().print(Text(printable(f"The {critic} critic of {exported.checkpoint}: {out}")), soft_wrap=True)
