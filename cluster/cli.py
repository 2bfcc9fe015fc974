"""The command line, ``waymark``.

Owns arguments, their help, and exit codes. Invariant: nothing but the standard library, typer and
rich is imported before a command runs, so that ``waymark --help`` answers at once; each command
imports what it needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster.commands.analysis import analysis_app
from cluster.commands.judge import judge_app
from cluster.commands.milestones import milestones_app
from cluster.commands.study import study_app
from cluster.errors import ExitCode, ManifestError, MissingError, RecipeError, RunError, RunInterrupted
from records.terminal import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cluster.preflight.plan import Plan
    from cluster.recipe.recipe import Recipe
    from records.checks import Check

app = typer.Typer(
    name="waymark",
    help="Train LLM web agents by reinforcement learning.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done, 1 unforeseen error, 2 wrong command line or recipe, 3 something is missing here, "
    "4 the run stopped itself, 130 interrupted.",
)
sites_app = typer.Typer(help="The embedded sites.", no_args_is_help=True)
app.add_typer(sites_app, name="sites")
env_app = typer.Typer(help="Environments: the built-in ones and your own.", no_args_is_help=True)
app.add_typer(env_app, name="env")
data_app = typer.Typer(help="Offline data: trajectories that others recorded.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(analysis_app)
app.add_typer(study_app)
app.add_typer(judge_app, name="judge")
app.add_typer(milestones_app, name="milestones")


_NO_LEARNING = ("warm_start.checkpoint=''", "warm_start.data=''", "run.phases=0")
"""What an evaluation, which learns nothing, does not ask of a recipe."""


_TAKE_ADDRESSES = ("train", "submit", "audit")


class Resume(StrEnum):
    """What to do with a run that is already in the run folder."""

    AUTO = "auto"
    NEVER = "never"
    OTHER_CODE = "other-code"


class Role(StrEnum):
    """What of a run may stand on a machine of its own."""

    DRIVER = "driver"
    WORKER = "worker"
    SERVER = "server"
    LEARNER = "learner"


RecipeArgument = Annotated[
    Path, typer.Argument(metavar="RECIPE", help="A recipe, such as cluster/recipes/laptop.yaml.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override one setting, such as run.phases=2; may be repeated."),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="The run folder. Default: runs/NAME, NAME from the recipe.")
]


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
    resume: Annotated[
        Resume,
        typer.Option(
            help="auto goes on with the run in the folder; never refuses one; other-code goes on although Waymark or a "
            "package has changed since."
        ),
    ] = Resume.AUTO,
    clone: Annotated[
        bool, typer.Option("--clone", help="Clone demonstrations before RL, whatever the recipe says of it.")
    ] = False,
    overrides: SetOption = None,
) -> None:
    """Train, or go on training: every phase from the warm start to the report."""
    asked = ["warm_start.clone=always"] if clone else []
    from records.stores.address import is_uri

    uri = out if out and is_uri(out) else ""
    place = _working_copy(uri) if uri else Path(out) if out else None
    loaded, folder = _load(recipe, place, [*asked, *(overrides or [])])
    from cluster.run_folder.stored_run import require_storable

    if uri:
        require_storable(loaded, uri)
    _require_ready(loaded, folder)
    from cluster.train import train as run

    try:
        run(loaded, folder, resume.value, uri)
    except KeyboardInterrupt as error:
        raise RunInterrupted(f"interrupted; the same command goes on with {uri or folder}") from error


@app.command()
def submit(
    recipe: RecipeArgument,
    out: Annotated[str, typer.Option("--out", help="The run folder: an absolute path that every node sees.")],
    address: Annotated[
        str, typer.Option(envvar="RAY_ADDRESS", help="The cluster's dashboard, such as http://127.0.0.1:8265.")
    ] = "http://127.0.0.1:8265",
    installed: Annotated[
        bool, typer.Option("--installed", help="The cluster's image has Waymark; else the sources here are sent.")
    ] = False,
    follow: Annotated[bool, typer.Option(help="Print the run's log until it ends, and end with its exit code.")] = True,
    overrides: SetOption = None,
) -> None:
    """Hand a run to a Ray cluster as a job; it goes on when this command is interrupted."""
    from cluster.submit import submit as run

    raise SystemExit(run(recipe, address, out, overrides or [], installed=installed, follow=follow))


@app.command(name="eval")
def evaluate(
    recipe: RecipeArgument,
    policy: Annotated[Path, typer.Option(help="Folder of the policy: OUT/trained of a run, or a Hugging Face model.")],
    split: Annotated[str, typer.Option(help="train, validation, test, validation_templates or test_templates.")],
    passes: Annotated[int, typer.Option(min=1, help="Episodes per task; 1 is greedy, more are sampled.")] = 1,
    steps_factor: Annotated[
        int, typer.Option(min=1, help="Multiple of its task's limit of actions that an episode gets.")
    ] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the result to this file.")] = None,
    keep: Annotated[
        Path | None, typer.Option("--out", help="Keep episodes and result in this new folder: for `analyze`, `gate`.")
    ] = None,
    overrides: SetOption = None,
) -> None:
    """Evaluate a policy on one split."""
    import json

    from cluster.recipe.run_settings import SPLITS
    from cluster.run_folder.durable import write_atomic

    if split not in SPLITS:
        raise RecipeError(f"--split: expected one of {', '.join(SPLITS)}; found {split!r}")
    named = f"policy.model={json.dumps(str(policy), ensure_ascii=False)}"
    only = f"run.evaluation.splits=[{split}]"  # the others need not exist for the recipe's tasks
    loaded, folder = _load(recipe, None, ["policy.revision=''", *(overrides or []), named, only, *_NO_LEARNING])
    _require_ready(loaded, folder)
    from cluster.display.result_table import evaluation_table
    from cluster.evaluation import evaluate as run

    result = run(loaded, policy=policy, split=split, passes=passes, keep=keep, steps_factor=steps_factor)
    if json_file is not None:
        write_atomic(json_file, result.as_json())
    _console().print(evaluation_table(split, result))


@app.command()
def check(
    recipe: RecipeArgument,
    out: OutOption = None,
    overrides: SetOption = None,
    measure: Annotated[bool, typer.Option(help="Measure the learner's device, and tell the hours of a phase.")] = False,
    tflops: Annotated[
        float | None, typer.Option(min=1e-3, help="TFLOP/s of the learner's device, where this machine has none such.")
    ] = None,
) -> None:
    """Show what a recipe would do here, without starting anything; exit code 3 when something is missing."""
    import yaml
    from rich.text import Text

    from cluster.preflight.doctor import examine
    from cluster.preflight.machine import Machine
    from cluster.preflight.pace import phase_pace
    from cluster.preflight.plan import planned
    from cluster.recipe.recipe import config_hash, resolved

    loaded, folder = _load(recipe, out, overrides)
    machine = Machine.here()
    console = _console()
    shown = yaml.safe_dump(resolved(loaded), sort_keys=False, allow_unicode=True)
    shown += f"\nconfig hash  {config_hash(loaded)}\nrun folder   {folder}\n"
    console.print(Text(printable(shown)), soft_wrap=True)
    plan = planned(loaded, machine)
    console.print(_plan_table(plan))
    if any(process.parts for process in plan.processes):
        console.print(_memory_table(plan))
    for line in phase_pace(loaded, tflops, measure=measure):
        console.print(Text(line), soft_wrap=True)
    _report(console, [entry for entry in examine(loaded, folder, machine, plan) if entry.status != "ok"])
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
    from cluster.placement import DRIVER, EVERYWHERE
    from cluster.preflight.doctor import ask_language_models, examine
    from cluster.preflight.packages import check_import
    from cluster.recipe.recipe import build_recipe

    loaded, folder = _load(recipe, None, overrides) if recipe else (build_recipe({}, overrides or ()), Path("runs"))
    roles = [one.value for one in role] if role else EVERYWHERE
    asked = ask_language_models(loaded) if DRIVER in roles else []
    _report(_console(), [*examine(loaded, folder, roles=roles), check_import("ray"), *asked])


@sites_app.command()
def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on, on this machine only.")] = 8000,
    seed: Annotated[int, typer.Option(help="Seed of the sites' data.")] = 0,
) -> None:
    """Serve the embedded sites for a person with a browser, until Ctrl-C."""
    from rich.text import Text

    from sites.app import create_app
    from sites.registry import SITES
    from sites.server import serve_forever

    app, console = create_app(seed), _console()
    for name, site in SITES.items():
        line = f"{name:6} http://{name}.localhost:{port}/"
        if site.account:
            user, password = site.account(app.state.sessions.data[name])
            line += f"  log in as {user} with {password}"
        console.print(Text(line))
    serve_forever(app, port)


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
    _console().print(table)


@env_app.command(name="audit")
def audit_environment(
    where: Annotated[
        str, typer.Argument(metavar="URL|ENV", help="A page's address, or an environment with a browser.")
    ],
    tasks: Annotated[int, typer.Option(min=1, help="Start pages that are looked at, of an environment.")] = 3,
    options: Annotated[str, typer.Option(help="Options of the environment's host, as a JSON object.")] = "{}",
    deadline: Annotated[float, typer.Option(min=1.0, help="Longest time for one page, in seconds.")] = 60.0,
) -> None:
    """Hold what agents are shown of pages against a second opinion; exit code 1 where something is missing."""
    import json

    from cluster.preflight.page_audit import audit_pages
    from cluster.preflight.page_audit_table import show_audits
    from records.failures import EpisodeFailed

    try:
        found = audit_pages(where, tasks=tasks, deadline_s=deadline, options=json.loads(options))
    except ValueError as error:
        raise RecipeError(str(error)) from error
    except EpisodeFailed as error:
        raise MissingError(f"{where}: no page to look at: {error}") from error
    show_audits(_console(), found)
    missing = sum(len(page.audit.missing) for page in found)
    if missing:
        raise RunError(f"{missing} elements that a person could use are not offered, see above")


@env_app.command(name="check")
def check_environment(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A built-in environment, an installed one's name, or module:name.")
    ],
    seconds: Annotated[float, typer.Option(min=0.1, help="How long each measurement takes, in seconds.")] = 5.0,
    options: Annotated[str, typer.Option(help="Options of the environment's host, as a JSON object.")] = "{}",
    deadline: Annotated[
        float, typer.Option(min=0.1, help="Longest wait for one point of the contract, in seconds.")
    ] = 120.0,
    tasks: Annotated[int, typer.Option(min=1, help="Training tasks that it is examined on, of unlike templates.")] = 2,
) -> None:
    """Run an environment through its contract and measure it; exit code 1 when a point is not kept."""
    import json

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
    show_findings(_console(), found)
    if found.broken:
        raise RunError(f"{path} breaks {found.broken} of {len(found.points)} points of the contract, see above")


@data_app.command(name="import")
def import_offline(
    recipe: RecipeArgument,
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="A .json or .jsonl file of WebRL, or a folder of VAB-WebArena-Lite."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to make. Default: the recipe's warm_start.data.")
    ] = None,
    overrides: SetOption = None,
) -> None:
    """Turn offline trajectories into data for the recipe's policy; exit code 1 when none of them can be used."""
    from rich.text import Text

    from cluster.data_import import import_data
    from cluster.display.import_table import show_import

    loaded, _ = _load(recipe, None, overrides)
    folder = out or (loaded.data_path if loaded.warm_start.data else None)
    if folder is None:
        raise RecipeError("name the folder to make: --out FOLDER, or warm_start.data in the recipe")
    console = _console()
    with console.status("Importing"):
        report = import_data(loaded, source, folder)
    show_import(console, report)
    if not report.episodes:
        raise RunError(f"nothing of {source} can be used, see above; no folder was made")
    console.print(Text(printable(f"Data: {folder}. A recipe names it as warm_start.data.")), soft_wrap=True)


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


def _load(path: Path, out: Path | None, overrides: list[str] | None) -> tuple[Recipe, Path]:
    """Return the recipe and the run folder."""
    from cluster.recipe.recipe import load_recipe

    recipe = load_recipe(path, overrides or ())
    joined = os.environ.get("RAY_ADDRESS", "")
    if joined and not recipe.run.resources.address:
        recipe = load_recipe(path, [*(overrides or ()), f"run.resources.address={_cluster(joined)}"])
    return recipe, out or Path("runs") / recipe.run.name


def _cluster(address: str) -> str:
    """Return the address of a cluster to join, from what the environment says."""
    if address.startswith(("http://", "https://")):
        raise RecipeError(
            f"RAY_ADDRESS is {address}, a dashboard's address: hand the run to that cluster with `waymark submit`, or "
            "unset it to run here"
        )
    return address


def _require_ready(recipe: Recipe, out: Path) -> None:
    """Raise ``MissingError`` naming everything this machine lacks for the recipe."""
    from cluster.preflight.doctor import examine
    from records.checks import Status

    missing = [entry for entry in examine(recipe, out) if entry.status is Status.FAIL]
    if missing:
        raise MissingError("\n".join(f"{entry.name}: {entry.found}. {entry.advice}".rstrip() for entry in missing))


def _report(console: Console, checks: list[Check]) -> None:
    """Print checks as a table; raise ``MissingError`` where one of them failed."""
    from rich.table import Table
    from rich.text import Text

    styles = {"ok": "green", "warn": "yellow", "fail": "bold red"}
    table = Table.grid(padding=(0, 2))
    for entry in checks:
        detail = entry.found + (f"\n→ {entry.advice}" if entry.advice else "")
        shown = (Text(printable(text)) for text in (entry.name, detail))
        table.add_row(Text(entry.status.value, style=styles[entry.status]), *shown)
    console.print(table)
    failed = sum(entry.status == "fail" for entry in checks)
    if failed:
        raise MissingError(f"{failed} missing, see above")


def _plan_table(plan: Plan) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Plan", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("process", "count", "cores each", "GPUs each", "MiB each", ""):
        table.add_column(heading, no_wrap=heading == "process")
    for part in plan.processes:
        numbers = (str(part.count), f"{part.cpus:g}", f"{part.gpus:g}", str(part.memory_mb))
        table.add_row(part.name, *numbers, Text(printable(part.note)))
    table.add_section()
    table.add_row("all", "", f"{plan.ray_cpus:g}", f"{plan.ray_gpus:g}", str(plan.memory_mb))
    return table


def _memory_table(plan: Plan) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="Memory by part", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("process", "part", "MiB each", "on", ""):
        table.add_column(heading)
    for process in plan.processes:
        for part in process.parts:
            table.add_row(process.name, part.name, str(part.mib), "GPU" if part.on_gpu else "host", part.why)
    return table


def _console() -> Console:
    from rich.console import Console

    return Console()


def _fail(message: str, code: ExitCode) -> None:
    sys.stderr.write(f"waymark: {printable(message)}\n")
    raise SystemExit(int(code))


if __name__ == "__main__":
    main()
