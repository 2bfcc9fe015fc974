"""The command line, ``waymark``.

Owns arguments, their help, and exit codes. Invariant: nothing but the standard library, typer and
rich is imported before a command runs, so that ``waymark --help`` answers at once; each command
imports what it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster.commands.analysis import analysis_app
from cluster.commands.data import data_app
from cluster.commands.environments import env_app
from cluster.commands.judge import judge_app
from cluster.commands.loading import RecipeArgument, SetOption, load_run, require_ready
from cluster.commands.milestones import milestones_app
from cluster.commands.numbers import number_option
from cluster.commands.sites import sites_app
from cluster.commands.study import study_app
from cluster.commands.targets import json_option, new_folder_option, require_folder
from cluster.errors import ExitCode, ManifestError, RecipeError, RunError, RunInterrupted
from cluster.run_folder.resume import Resume
from records.roles import Role
from records.terminal import printable

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    name="waymark",
    help="Train LLM web agents by reinforcement learning.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done, 1 unforeseen error, 2 wrong command line or recipe, 3 something is missing here, "
    "4 the run stopped itself, 130 interrupted.",
)
app.add_typer(sites_app, name="sites")
app.add_typer(env_app, name="env")
app.add_typer(data_app, name="data")
app.add_typer(analysis_app)
app.add_typer(study_app)
app.add_typer(judge_app, name="judge")
app.add_typer(milestones_app, name="milestones")


_TAKE_ADDRESSES = ("train", "submit", "audit")


OutOption = Annotated[
    Path | None, typer.Option("--out", help="The run folder. Default: runs/NAME, NAME from the recipe.")
]


ResumeOption = Annotated[
    Resume,
    typer.Option(
        help="auto goes on with the run in the folder; never refuses one; other-code goes on although Waymark or a "
        "package has changed since."
    ),
]
CloneOption = Annotated[
    bool, typer.Option("--clone", help="Clone demonstrations before RL, whatever the recipe says of it.")
]


def _cloning(clone: bool) -> list[str]:
    return ["warm_start.clone=always"] if clone else []


@app.command()
def train(
    recipe: RecipeArgument,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            help="The run folder, or the address of a run in an object store (s3://, gs://, az://). Default: "
            "runs/NAME, NAME from the recipe.",
        ),
    ] = None,
    resume: ResumeOption = Resume.AUTO,
    clone: CloneOption = False,
    overrides: SetOption = None,
) -> None:
    """Train, or go on training: every phase from the warm start to the report."""
    from records.stores.address import is_uri

    if out is not None and not out.strip():
        raise RecipeError("--out is empty: name the run's folder, or leave it out")
    uri = out if out and is_uri(out) else ""
    place = _working_copy(uri) if uri else Path(out) if out else None
    loaded, folder = load_run(recipe, place, [*_cloning(clone), *(overrides or [])])
    from cluster.run_folder.stored_run import require_storable

    if uri:
        require_storable(loaded, uri)
    require_folder("--out", folder)
    require_ready(loaded, folder)
    from cluster.train import train as run

    try:
        run(loaded, folder, resume, uri)
    except KeyboardInterrupt as error:
        raise RunInterrupted(f"interrupted; the same command goes on with {uri or folder}") from error


@app.command()
def submit(
    recipe: RecipeArgument,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            help="The run folder: an absolute path that every node sees, or an address such as s3://BUCKET/RUN.",
        ),
    ],
    address: Annotated[
        str, typer.Option(envvar="RAY_ADDRESS", help="The cluster's dashboard, such as http://127.0.0.1:8265.")
    ] = "http://127.0.0.1:8265",
    installed: Annotated[
        bool, typer.Option("--installed", help="The cluster's image has Waymark; else the sources here are sent.")
    ] = False,
    modules: Annotated[
        list[Path] | None,
        typer.Option("--with", help="A module or package of your own that the recipe names: sent too; repeatable."),
    ] = None,
    resume: ResumeOption = Resume.AUTO,
    clone: CloneOption = False,
    follow: Annotated[bool, typer.Option(help="Print the run's log until it ends, and end with its exit code.")] = True,
    overrides: SetOption = None,
) -> None:
    """Hand a run to a Ray cluster as a job; it goes on when this command is interrupted."""
    from cluster.submit import Sent
    from cluster.submit import submit as run

    sent, asked = Sent(modules or (), installed), [*_cloning(clone), *(overrides or [])]
    raise SystemExit(run(recipe, address, out, asked, sent=sent, resume=resume, follow=follow))


@app.command(name="eval")
def evaluate(
    recipe: RecipeArgument,
    policy: Annotated[Path, typer.Option(help="Folder of the policy: OUT/trained of a run, or a Hugging Face model.")],
    split: Annotated[
        str,
        typer.Option(
            help="train, validation, test, validation_templates or test_templates; of chains test_wordings, test_long "
            "or test_atoms too."
        ),
    ],
    passes: Annotated[int, typer.Option(min=1, help="Episodes per task; 1 is greedy, more are sampled.")] = 1,
    steps_factor: Annotated[
        int, typer.Option(min=1, max=1000, help="Multiple of its task's limit of actions that an episode gets.")
    ] = 1,
    json_file: Annotated[Path | None, json_option("the result")] = None,
    keep: Annotated[
        Path | None,
        new_folder_option(
            "Keep episodes and result in this new folder: for `analyze`, `gate`. Needed where a Ray cluster is joined, "
            "in a folder that every node sees."
        ),
    ] = None,
    overrides: SetOption = None,
) -> None:
    """Evaluate a policy on one split."""
    from cluster.preflight.evaluation import require_evaluable, require_shared_place
    from cluster.recipe.evaluated import as_evaluated
    from cluster.recipe.run_settings import SPLITS
    from cluster.run_folder.durable import write_atomic

    if split not in SPLITS:
        raise RecipeError(f"--split: expected one of {', '.join(SPLITS)}; found {split!r}")
    loaded, folder = load_run(recipe, None, overrides)
    evaluated = as_evaluated(loaded, policy=policy, split=split, passes=passes, steps_factor=steps_factor)
    require_evaluable(evaluated)
    require_shared_place(evaluated, keep)
    require_ready(evaluated, folder, learns=False)
    from cluster.display.result_table import evaluation_table
    from cluster.evaluation import evaluate as run

    result = run(evaluated, keep=keep, steps_factor=steps_factor)
    _console().print(evaluation_table(split, result))
    if json_file is not None:
        write_atomic(json_file, result.as_json())


@app.command()
def check(
    recipe: RecipeArgument,
    out: OutOption = None,
    overrides: SetOption = None,
    measure: Annotated[bool, typer.Option(help="Measure the learner's device, and tell the hours of a phase.")] = False,
    tflops: Annotated[
        float | None, number_option(1e-3, 1e6, "TFLOP/s of the learner's device, where this machine has none such.")
    ] = None,
) -> None:
    """Show what a recipe would do here, without starting anything; exit code 3 when something is missing."""
    import yaml
    from rich.text import Text

    from cluster.display.check_table import show_checks
    from cluster.display.plan_table import memory_table, plan_table
    from cluster.preflight.doctor import machine_checks
    from cluster.preflight.machine import Machine
    from cluster.preflight.pace import phase_pace
    from cluster.preflight.plan import planned
    from cluster.recipe.recipe import config_hash, resolved

    loaded, folder = load_run(recipe, out, overrides)
    require_folder("--out", folder)
    machine = Machine.here()
    console = _console()
    shown = yaml.safe_dump(resolved(loaded), sort_keys=False, allow_unicode=True)
    shown += f"\nconfig hash  {config_hash(loaded)}\nrun folder   {folder}\n"
    console.print(Text(printable(shown)), soft_wrap=True)
    plan = planned(loaded, machine)
    console.print(plan_table(plan))
    if any(process.parts for process in plan.processes):
        console.print(memory_table(plan))
    for line in phase_pace(loaded, tflops, measure=measure):
        console.print(Text(line), soft_wrap=True)
    show_checks(console, [entry for entry in machine_checks(loaded, folder, machine, plan) if entry.status != "ok"])
    console.print("Nothing is missing.")


@app.command()
def audit(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="A run folder, or a run's address; the run may still be going on.")
    ],
) -> None:
    """Check that a run adds up: manifests, files, episodes, trained steps, attempts; exit code 1 when it does not."""
    from cluster.audit.audit import audit as audit_run
    from cluster.audit.table import show_audit
    from cluster.run_folder.stored_run import copied_run
    from records.stores.address import is_uri
    from records.stores.store import StoreError

    try:
        with copied_run(folder) if is_uri(folder) else nullcontext(Path(folder)) as found:
            result = audit_run(found)
    except StoreError as error:
        raise ManifestError(str(error)) from error
    show_audit(_console(), result)
    if result.findings:
        raise RunError(f"{folder} does not add up: {len(result.findings)} findings, see above")


@app.command()
def doctor(
    recipe: Annotated[
        Path | None, typer.Argument(metavar="[RECIPE]", help="Also ask each language model of this recipe's judges.")
    ] = None,
    role: Annotated[
        list[Role] | None,
        typer.Option(
            help="What runs on this machine, where it is a cluster's; may be repeated. Default: all of a run."
        ),
    ] = None,
    overrides: SetOption = None,
) -> None:
    """Look at this machine: Python, packages, browser, cores, memory; exit code 3 when something is missing."""
    from cluster.display.check_table import show_checks
    from cluster.placement import EVERYWHERE
    from cluster.preflight.doctor import ask_language_models, machine_checks
    from cluster.preflight.packages import check_import
    from cluster.recipe.recipe import build_recipe

    loaded, folder = load_run(recipe, None, overrides) if recipe else (build_recipe({}, overrides or ()), Path("runs"))
    roles = role or EVERYWHERE
    asked = ask_language_models(loaded) if Role.DRIVER in roles else []
    show_checks(_console(), [*machine_checks(loaded, folder, roles=roles), check_import("ray"), *asked])


def main() -> None:
    """Run the command line; the entry point of ``waymark``."""
    try:
        _refuse_addresses(sys.argv[1:])
        app(standalone_mode=True)
    except RunError as error:
        _fail(str(error), error.code)


def _refuse_addresses(words: Sequence[str]) -> None:
    """Raise ``RecipeError`` where a command that reads folders is given the address of a run in a store."""
    from records.stores.object_store import SCHEMES

    runs = [word for word in words if word.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))]
    if runs and words[0] not in _TAKE_ADDRESSES:
        raise RecipeError(
            f"waymark {words[0]} reads folders, not {runs[0]}; {', '.join(_TAKE_ADDRESSES)} take addresses. Copy "
            "the run with your store's own tools, or train with --out FOLDER"
        )


def _working_copy(uri: str) -> Path:
    """Return the folder of this node for the run at an address."""
    from records.stores.store import StoreError
    from records.stores.working_copy import working_copy

    try:
        return working_copy(uri).folder
    except StoreError as error:
        raise RecipeError(f"--out: {error}") from error


def _console() -> Console:
    from rich.console import Console

    return Console()


def _fail(message: str, code: ExitCode) -> None:
    sys.stderr.write(f"waymark: {printable(message)}\n")
    raise SystemExit(int(code))
