"""The commands about judges of recorded episodes: ``waymark judge label``, ``agree`` and ``train``.

Owns their arguments and help. Invariant: as in ``cluster.cli``, each command imports what it needs when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster.commands.loading import Overrides, set_option
from cluster.commands.numbers import number_option
from cluster.commands.targets import json_option, new_folder_option
from cluster.errors import RecipeError
from records.terminal import printable

judge_app = typer.Typer(help="Judges of recorded episodes: labels, agreement, outcome models.", no_args_is_help=True)

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
SetOption = Annotated[Overrides, set_option("judges.trained.folder=orm")]


@judge_app.command(name="label")
def label_episodes(
    folder: RunArgument,
    judge: Annotated[str, typer.Option(help="The judge: a registered name, an installed one's, or module:name.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Episodes at most, in the order of their ids.")] = None,
    overrides: SetOption = None,
) -> None:
    """Let a judge label the rollouts and evaluations of a run; those that it has labelled are not asked about again."""
    from rich.console import Console

    from cluster.judge_commands import label_run

    console = Console()
    try:
        with console.status("Asking") as status:
            found = label_run(
                folder, judge, lambda done, total, lost: status.update(f"{done}/{total}, {lost} failed"),
                overrides or (), limit,
            )  # fmt: skip
    except ValueError as error:
        raise RecipeError(str(error)) from error
    console.print(f"{found.labelled} of {found.episodes} episodes have a label; {found.asked} were asked about.")
    for code, count in sorted(found.failures.items()):
        console.print(f"{count} failed as {code}")


@judge_app.command()
def agree(
    folder: RunArgument,
    first: Annotated[str, typer.Option(help="A judge; 'rules' are the verdicts that episodes were played with.")],
    second: Annotated[str, typer.Option(help="The other one.")],
) -> None:
    """Print how far two judges agree on the outcomes of a run's episodes, in all and by site."""
    from rich.console import Console

    from cluster.display.judge_table import show_agreement
    from cluster.judge_commands import agreement_of

    show_agreement(Console(), first, second, agreement_of(folder, first, second))


@judge_app.command(name="train")
def train_judge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs whose episodes teach.")],
    out: Annotated[Path, new_folder_option("The new folder to make; judges.trained.folder names it.")],
    start: Annotated[
        Path | None, typer.Option(help="The policy folder to start from. Default: RUN/policy of the first run.")
    ] = None,
    by: Annotated[str, typer.Option(help="Whose verdicts are learned: 'rules', or a judge with labels.")] = "rules",
    updates: Annotated[int, typer.Option(min=1, help="Updates of the optimiser.")] = 300,
    batch: Annotated[int, typer.Option(min=1, help="Episodes an update.")] = 16,
    learning_rate: Annotated[float, number_option(1e-9, 1.0, "Peak AdamW learning rate.")] = 5e-4,
    max_prompt_tokens: Annotated[int, typer.Option(min=64, help="Tokens of a prompt at most.")] = 640,
    seed: Annotated[int, typer.Option(help="Draws the split by templates and the order of episodes.")] = 0,
    device: Annotated[str, typer.Option(help="Torch device.")] = "cpu",
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
    json_file: Annotated[Path | None, json_option("the report")] = None,
) -> None:
    """Train an outcome model on judged episodes, and report on held-out templates what it is worth."""
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.text import Text

    from cluster.display.judge_table import show_outcome_report
    from cluster.judge_commands import episodes_judged_by
    from cluster.outcome_training import OutcomeTraining, train_outcome_model
    from cluster.run_folder.durable import write_atomic

    settings = OutcomeTraining(
        updates=updates, batch=batch, learning_rate=learning_rate, max_prompt_tokens=max_prompt_tokens, seed=seed,
        device=device, threads=threads,
    )  # fmt: skip
    console = Console()
    try:
        with console.status("Reading episodes") as status:
            report = train_outcome_model(
                episodes_judged_by(runs, by), start or runs[0] / "policy", out, settings,
                lambda done, loss: status.update(f"{done}/{updates} updates, loss {loss:.3f}"),
            )  # fmt: skip
    except (OSError, ValueError) as error:
        raise RecipeError(f"--start: {error}") from error
    if json_file is not None:
        write_atomic(json_file, json.dumps(asdict(report), indent=1) + "\n")
    show_outcome_report(console, report)
    console.print(Text(printable(f"Outcome model: {out}. A recipe names it as judges.trained.folder.")), soft_wrap=True)
