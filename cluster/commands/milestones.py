"""The commands about milestones: ``waymark milestones`` ``generate``, ``validate``, ``train`` and ``calibrate``.

Owns their arguments and help. Invariant: as in ``cluster.cli``, each command imports what it needs when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster.commands.loading import Overrides, set_option
from cluster.commands.targets import json_option
from cluster.errors import MissingError, RecipeError, RunError
from records.terminal import printable

milestones_app = typer.Typer(
    help="Milestones of tasks: written by a model, and how good they are.", no_args_is_help=True
)


@milestones_app.command()
def generate(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe, such as my-recipe.yaml.")],
    model: Annotated[
        str, typer.Option(help="Language model that writes them, by its name in judges.llm.models; as the recipe says.")
    ] = "",
    split: Annotated[str, typer.Option(help="Split that the tasks are drawn from.")] = "train",
    tasks: Annotated[int, typer.Option(min=1, help="Number of tasks.")] = 3,
    json_file: Annotated[Path | None, json_option("them")] = None,
    overrides: Annotated[Overrides, set_option("milestones.count=0")] = None,
) -> None:
    """Let a language model write milestones for a few tasks of a recipe, to look at; nothing is kept for a run."""
    import json

    from rich.console import Console

    from cluster.display.milestone_table import show_written
    from cluster.milestones.writing import generate_milestones
    from cluster.recipe.override import override
    from cluster.recipe.recipe import load_recipe
    from cluster.run_folder.durable import write_atomic
    from records.failures import EpisodeFailed

    named = [override("milestones.model", model)] if model else []
    loaded = load_recipe(recipe, [*(overrides or []), *named])
    if not loaded.milestones.model:
        raise RecipeError("name a model: --model NAME, or milestones.model in the recipe")
    try:
        drawn, written = generate_milestones(loaded, split, tasks)
    except ValueError as error:
        raise RecipeError(str(error)) from error
    except EpisodeFailed as error:
        raise MissingError(f"{loaded.run.environment}: its host did not start: {error}") from error
    if json_file is not None:
        write_atomic(json_file, json.dumps(written.to_json(), indent=1, ensure_ascii=False) + "\n")
    show_written(Console(), drawn, written)
    if not written.written:
        raise RunError("no milestones were written, see above")


@milestones_app.command()
def validate(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder; the run may still be going on.")],
    checker: Annotated[
        Path | None, typer.Option(help="Also ask the trained checker in this folder, on templates it does not know.")
    ] = None,
    json_file: Annotated[Path | None, json_option("the statistics")] = None,
) -> None:
    """Test how well a run's milestones tell success, beside bad ones; exit code 1 where they are rejected."""
    from rich.console import Console

    from cluster.display.milestone_table import show_validity
    from cluster.milestones.validation import PLAYED, by_checker, validate_milestones, validity_json
    from cluster.run_folder.durable import write_atomic
    from judges.of_milestones.checker import load_checker
    from records.episodes import Source

    try:
        others = {"trained checker": by_checker(load_checker(checker))} if checker else {}
    except ValueError as error:
        raise RecipeError(str(error)) from error
    found = validate_milestones(folder, (Source.ROLLOUT, Source.EVALUATION), others)
    if json_file is not None:
        write_atomic(json_file, validity_json(found))
    show_validity(Console(), found)
    if any(one.source == PLAYED and one.validity.rejected for one in found):
        raise RunError(f"the milestones of {folder} are rejected, see above")


@milestones_app.command()
def train(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder whose milestones have checks.")],
    out: Annotated[Path, typer.Option("--out", help="The folder that gets the trained checker.")],
    held_out: Annotated[int, typer.Option(min=0, help="Leave out one template in so many; 0 trains on all.")] = 5,
) -> None:
    """Train a checker of milestones from a run's episodes, for tasks whose milestones have no checks."""
    from rich.console import Console
    from rich.text import Text

    from cluster.milestones.validation import known_milestones, left_out
    from judges.of_milestones.checker import save_checker, train_checker
    from judges.of_milestones.encoder import encoder_named
    from judges.of_milestones.features import Features
    from records.episodes import Source

    known = known_milestones(folder, (Source.ROLLOUT, Source.EVALUATION))
    taught = [one for one in known if not (held_out and left_out(one.episode.template, held_out) == 0)]
    if known and not taught:
        raise RunError(f"{folder}: all {len(known)} episodes are of templates that --held-out {held_out} leaves out")
    console = Console()
    try:
        with console.status(f"Training on {len(taught)} of {len(known)} episodes"):
            path = save_checker(train_checker(taught, Features(encoder_named())), out)
    except ValueError as error:
        raise RunError(f"{folder}: {error}") from error
    console.print(Text(printable(f"Checker: {path}. Hold it against the rest: waymark milestones validate --checker.")))


@milestones_app.command()
def calibrate(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder whose milestones have checks.")],
    held_out: Annotated[
        int, typer.Option(min=0, help="Leave one template in so many out, to measure on; 0 leaves out none.")
    ] = 5,
    encoder: Annotated[str, typer.Option(help="Sentence encoder, as in judges.milestone_matching.encoder.")] = "",
    json_file: Annotated[Path | None, json_option("the numbers")] = None,
) -> None:
    """Find the similarity above which an action reaches a milestone, for judges.milestone_matching.threshold."""
    import json
    from dataclasses import asdict

    from rich.console import Console

    from cluster.display.milestone_table import show_calibration
    from cluster.milestones.calibration import calibrate_matching
    from cluster.milestones.validation import known_milestones
    from cluster.run_folder.durable import write_atomic
    from judges.of_milestones.encoder import encoder_named
    from judges.settings import MatchingSettings
    from records.episodes import Source

    console = Console()
    try:
        known = known_milestones(folder, (Source.ROLLOUT, Source.EVALUATION))
        with console.status(f"Comparing the actions of {len(known)} episodes with their milestones"):
            found = calibrate_matching(known, encoder_named(encoder or MatchingSettings.encoder), held_out)
    except ValueError as error:
        raise RunError(f"{folder}: {error}") from error
    if json_file is not None:
        write_atomic(json_file, json.dumps(asdict(found), indent=1) + "\n")
    show_calibration(console, found)
