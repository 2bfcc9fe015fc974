"""The command line answers fast, explains itself, and exits with the documented codes."""

from __future__ import annotations

import json
import re
import resource
import socket
import subprocess
import sys
import types
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from analysis.results import GroupResult, SplitResult
from cluster import cli
from cluster.errors import ExitCode, MissingError, RecipeError, RunError, RunInterrupted, RunStopped
from cluster.preflight import doctor
from cluster.recipe.override import override
from cluster.recipe.recipe import Recipe, load_recipe
from records.checks import Check, Status
from records.episodes import Task
from sites.task_source import EmbeddedTasks

RUNNER = CliRunner()


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "r.yaml"
    path.write_text("run: {name: mine, phases: 2}\n")
    return path


@pytest.fixture
def complete_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "machine_checks", lambda *arguments, **named: [Check("all", Status.OK, "there")])


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Stand in for ``cluster.train`` and ``cluster.evaluation``; record what the commands hand to them."""
    seen: list[tuple[str, Any]] = []
    group = GroupResult(0.5, 4, 0.15, 0.85)
    result = SplitResult(0.5, 4, 0.15, 0.85, {"shop": group}, {"1-5": group}, {"shop.buy": group}, {"infra/x": 1})
    training, evaluation = types.ModuleType("cluster.train"), types.ModuleType("cluster.evaluation")

    def train(recipe: Any, out: Path, resume: str, uri: str = "") -> None:
        seen.append(("train", (recipe.run.phases, out, resume, *([uri] if uri else []))))

    def evaluate(recipe: Any, *, keep: Path | None, steps_factor: int) -> SplitResult:
        asked = recipe.run.evaluation
        seen.append(("evaluate", (recipe.policy.model, asked.splits, asked.passes, keep, steps_factor)))
        return result

    training.train, evaluation.evaluate = train, evaluate  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cluster.train", training)
    monkeypatch.setitem(sys.modules, "cluster.evaluation", evaluation)
    return seen


def test_help_answers_in_under_a_second(child_env: dict[str, str]) -> None:
    """In processor time, which a busy machine does not stretch as it does wall time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "cluster", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, env=child_env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime) < 1.0
    for command in ("train", "eval", "check", "doctor", "sites", "data", "analyze"):
        assert command in done.stdout


def test_train_hands_over_the_recipe_the_folder_and_the_resume_mode(
    recipe: Path, calls: list[tuple[str, Any]], complete_machine: None
) -> None:
    RUNNER.invoke(cli.app, ["train", str(recipe)], catch_exceptions=False)
    RUNNER.invoke(
        cli.app, ["train", str(recipe), "--out", "o", "--resume", "never", "--set", "run.phases=5"],
        catch_exceptions=False,
    )  # fmt: skip
    assert calls == [("train", (2, Path("runs/mine"), "auto")), ("train", (5, Path("o"), "never"))]


def test_train_hands_over_the_address_of_a_run_and_its_working_copy(
    recipe: Path, calls: list[tuple[str, Any]], complete_machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYMARK_NODE_FOLDER", str(tmp_path / "node"))
    RUNNER.invoke(cli.app, ["train", str(recipe), "--out", "s3://bucket/runs/mine"], catch_exceptions=False)
    ((_, (_, folder, _, uri)),) = calls
    assert uri == "s3://bucket/runs/mine"
    assert folder.parent == tmp_path / "node"
    assert folder.name.startswith("mine-")


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("s3://key:secret@bucket/run", "no credentials"),
        ("s3://bucket", "a folder of the run's own"),
        ("ftp://host/run", "begins with s3://"),
        ("memory://bucket/run", "one process alone"),
    ],
)
def test_an_address_that_leads_to_no_run_is_refused(
    recipe: Path, calls: list[tuple[str, Any]], out: str, says: str
) -> None:
    found = RUNNER.invoke(cli.app, ["train", str(recipe), "--out", out])
    assert isinstance(found.exception, RecipeError)
    assert says in str(found.exception)
    assert "secret" not in str(found.exception)
    assert calls == []


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_name_of_a_run_folder_is_no_default(recipe: Path, empty: str) -> None:
    with pytest.raises(RecipeError, match="--out is empty: name the run's folder, or leave it out"):
        RUNNER.invoke(cli.app, ["train", str(recipe), "--out", empty], catch_exceptions=False)


def test_sites_are_not_said_to_be_served_on_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with pytest.raises(RecipeError, match=f"--port {port}: Address already in use; name another port"):
            RUNNER.invoke(cli.app, ["sites", "serve", "--port", port], catch_exceptions=False)


@pytest.mark.parametrize("words", [["check", "r.yaml", "--out"], ["judge", "label"], ["gate", "runs/one"]])
def test_commands_that_read_folders_refuse_an_address(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["waymark", *words, "s3://bucket/run"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == int(ExitCode.USAGE)


def test_eval_prints_a_table_and_writes_json(
    recipe: Path, calls: list[tuple[str, Any]], complete_machine: None, tmp_path: Path
) -> None:
    arguments = [
        "eval",
        str(recipe),
        "--policy",
        "p",
        "--split",
        "test",
        "--passes",
        "3",
        "--out",
        "kept",
        "--steps-factor",
        "2",
    ]
    done = RUNNER.invoke(cli.app, [*arguments, "--json", str(tmp_path / "r.json")], catch_exceptions=False)
    assert calls == [("evaluate", ("p", ("test",), 3, Path("kept"), 2))]
    assert "50.0" in done.output
    assert "1 lost" in done.output
    assert json.loads((tmp_path / "r.json").read_text())["by_site"]["shop"]["n"] == 4


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ["--passes", "8", "--set", "run.evaluation.temperature=0"],
            "--passes 8: run.evaluation.temperature must be a temperature above 0",
        ),
        (
            ["--steps-factor", "1000", "--set", "rollout.episode_deadline_s=9000"],
            "--steps-factor 1000: rollout.episode_deadline_s must be a time of at most",
        ),
    ],
)
def test_eval_refuses_what_together_makes_no_sense(recipe: Path, words: list[str], reason: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(reason)):
        RUNNER.invoke(
            cli.app, ["eval", str(recipe), "--policy", "p", "--split", "test", *words], catch_exceptions=False
        )


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["check", "laptop.yaml"], "--tflops"),
        (["gate", "a", "b"], "--margin"),
        (["gate", "a", "b"], "--level"),
        (["judge", "train", "a", "--out", "nowhere"], "--learning-rate"),
        (["env", "check", "embedded"], "--deadline"),
    ],
)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_number_is_a_number_within_its_limits(command: list[str], option: str, value: str) -> None:
    done = RUNNER.invoke(cli.app, [*command, option, value])
    assert done.exit_code == 2, done.output
    assert option in done.output


def test_eval_needs_no_other_split_than_its_own(calls: list[tuple[str, Any]]) -> None:
    chains = Path(__file__).parents[2] / "benchmarks" / "studies" / "chains-arms.yaml"
    words = ["eval", str(chains), "--policy", "p", "--set", "run.training_tasks=4"]
    words += ["--set", "run.evaluation.tasks={}", "--set", "run.evaluation.tasks_per_split=2", "--split"]
    for split, missing in (("test_long", False), ("test_templates", True)):
        refused = RUNNER.invoke(cli.app, [*words, split]).exception
        assert isinstance(refused, RecipeError) is missing
        assert (f"--split {split}: chains have no split" in str(refused)) is missing
        assert "tasks: " not in str(refused)
        assert len(calls) == (not missing) or isinstance(refused, MissingError)
        calls.clear()


def model_folder(path: Path, *names: str) -> Path:
    path.mkdir(parents=True)
    for name in names:
        (path / name).write_text("{}")
    return path


def test_eval_refuses_a_policy_that_is_none_by_the_options_name(
    recipe: Path, calls: list[tuple[str, Any]], complete_machine: None, tmp_path: Path
) -> None:
    run, begun = model_folder(tmp_path / "run", "manifest.json"), model_folder(tmp_path / "begun", "manifest.json")
    model_folder(run / "trained", "config.json")
    broken = model_folder(tmp_path / "broken", "config.json", "tokenizer.json", "model.safetensors")
    says = {
        "/nowhere": "is not there; name OUT/trained of a run",
        str(recipe): "is no folder; name OUT/trained of a run",
        str(run): f"is the folder of a run; its policy is {run / 'trained'}",
        str(begun): "is the folder of a run; it has no policy before its end",
        str(run / "trained"): "has no tokenizer.json, *.safetensors; name OUT/trained",
        str(broken): "cannot be read: ",
        "tiny": "is what a recipe makes a policy of",
    }
    for policy, found in says.items():
        words = ["eval", str(recipe), "--policy", policy, "--split", "test"]
        with pytest.raises(RecipeError, match=rf"^--policy:? {re.escape(policy)}:? {re.escape(found)}"):
            RUNNER.invoke(cli.app, words, catch_exceptions=False)
    assert calls == []


@pytest.mark.parametrize(
    ("split", "override", "says"),
    [
        ("test_long", "run.seed=1", "--split test_long: unknown split 'test_long': expected one of train, validation"),
        ("test_templates", "environments.embedded.family=chains", "--split test_templates: chains have no split"),
    ],
)
def test_eval_refuses_a_split_that_its_tasks_have_not(
    recipe: Path, calls: list[tuple[str, Any]], complete_machine: None, split: str, override: str, says: str
) -> None:
    words = ["eval", str(recipe), "--policy", "p", "--split", split, "--set", override]
    with pytest.raises(RecipeError, match=re.escape(says)):
        RUNNER.invoke(cli.app, words, catch_exceptions=False)
    assert calls == []


def test_tasks_that_no_split_has_are_not_the_options_fault(
    recipe: Path, calls: list[tuple[str, Any]], complete_machine: None
) -> None:
    words = ["eval", str(recipe), "--policy", "p", "--split", "test", "--set", "run.environment=webarena"]
    RUNNER.invoke(cli.app, words, catch_exceptions=False)
    assert len(calls) == 1


def test_the_machine_is_to_be_ready_for_the_evaluation_and_not_for_the_training(
    recipe: Path, calls: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[tuple[Recipe, bool]] = []
    monkeypatch.setattr(doctor, "machine_checks", lambda asked, out, learns: looked_at.append((asked, learns)) or [])
    words = ["eval", str(recipe), "--policy", "p", "--split", "test", "--steps-factor", "2"]
    trained = {
        "warm_start.checkpoint": "/gone", "policy.publication": "broadcast", "policy.revision": "abc",
        "policy.model": "some/model", "learner.adapters.rank": 8, "learner.precision": "bfloat16",
        "learner.ranks": 2, "learner.device": "cuda",
    }  # fmt: skip
    words += [word for key, value in trained.items() for word in ("--set", override(key, value))]
    RUNNER.invoke(cli.app, words, catch_exceptions=False)
    ((asked, learns),) = looked_at
    assert not learns
    assert (asked.policy.model, asked.policy.revision, asked.policy.publication) == ("p", "", "file")
    assert (asked.warm_start.checkpoint, asked.run.phases) == ("", 0)
    assert (asked.learner.adapters.rank, asked.learner.precision, asked.learner.ranks) == (0, "float32", 1)
    assert asked.rollout.episode_deadline_s == 2 * load_recipe(recipe).rollout.episode_deadline_s
    assert len(calls) == 1


@pytest.mark.parametrize(("named", "joined"), [("RAY_ADDRESS", "head:6379"), ("run.resources.address", "auto")])
def test_on_a_cluster_an_evaluation_wants_a_place_that_all_nodes_see(
    recipe: Path,
    calls: list[tuple[str, Any]],
    complete_machine: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    named: str,
    joined: str,
) -> None:
    words = ["eval", str(recipe), "--policy", "p", "--split", "test"]
    if named == "RAY_ADDRESS":
        monkeypatch.setenv(named, joined)
    else:
        words += ["--set", f"{named}={joined}"]
    with pytest.raises(RecipeError, match=rf"^--out: .* cluster at {joined}.*that every node sees.*RAY_ADDRESS"):
        RUNNER.invoke(cli.app, words, catch_exceptions=False)
    assert calls == []
    RUNNER.invoke(cli.app, [*words, "--out", str(tmp_path / "kept")], catch_exceptions=False)
    assert [call[1][3] for call in calls] == [tmp_path / "kept"]


@pytest.mark.parametrize("command", ["train", "eval", "check"])
@pytest.mark.parametrize("address", ["ray://head:10001", "http://head:8265"])
def test_an_address_that_no_driver_joins_is_refused_and_submit_named(
    recipe: Path,
    calls: list[tuple[str, Any]],
    complete_machine: None,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    address: str,
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    more = ["--policy", "p", "--split", "test"] if command == "eval" else []
    with pytest.raises(RecipeError, match=rf"^RAY_ADDRESS is {address}, .*`waymark submit`"):
        RUNNER.invoke(cli.app, [command, str(recipe), *more], catch_exceptions=False)
    assert calls == []


def test_an_unknown_split_is_refused_before_anything_starts(recipe: Path, calls: list[tuple[str, Any]]) -> None:
    with pytest.raises(RecipeError, match="found 'tset'"):
        RUNNER.invoke(
            cli.app, ["eval", str(recipe), "--policy", "p", "--split", "tset"], catch_exceptions=False
        )  # fmt: skip
    assert calls == []


def test_training_does_not_start_where_something_is_missing(
    recipe: Path, calls: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Check("browser", Status.FAIL, "none found", "install chromium")
    monkeypatch.setattr(doctor, "machine_checks", lambda *arguments, **named: [gone])
    with pytest.raises(MissingError, match=r"browser: none found\. install chromium"):
        RUNNER.invoke(cli.app, ["train", str(recipe)], catch_exceptions=False)
    assert calls == []


def test_check_shows_the_resolved_recipe_and_the_plan(recipe: Path, complete_machine: None) -> None:
    done = RUNNER.invoke(cli.app, ["check", str(recipe), "--set", "learner.gamma=0.77"], catch_exceptions=False)
    assert done.exit_code == 0
    for text in ("gamma: 0.77", "config hash", "runs/mine", "rollout worker", "optimiser", "Nothing is missing."):
        assert text in done.output


def test_check_fails_where_the_plan_does_not_fit(recipe: Path) -> None:
    with pytest.raises(MissingError, match="missing"):
        RUNNER.invoke(
            cli.app, ["check", str(recipe), "--set", "run.resources.learner_memory_mb=99000000"], catch_exceptions=False
        )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RunError("x"), 1),
        (RecipeError("x"), 2),
        (MissingError("x"), 3),
        (RunStopped("x"), 4),
        (RunInterrupted("x"), 130),
    ],
)
def test_errors_become_the_documented_exit_codes(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(**options: Any) -> None:
        raise error

    monkeypatch.setattr(cli, "app", failing)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == code
    assert capsys.readouterr().err.startswith("waymark: ")


def test_ctrl_c_says_how_to_go_on(
    recipe: Path, calls: list[tuple[str, Any]], complete_machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["cluster.train"], "train", interrupted)
    with pytest.raises(RunInterrupted, match="the same command goes on with runs/mine"):
        RUNNER.invoke(cli.app, ["train", str(recipe)], catch_exceptions=False)


def test_a_wrong_recipe_ends_with_code_2_and_one_clear_line(tmp_path: Path, child_env: dict[str, str]) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("run: {phase: 2}\n")
    done = subprocess.run([sys.executable, "-m", "cluster", "check", str(path)], capture_output=True, text=True,
                          timeout=120, check=False, env=child_env)  # fmt: skip
    assert done.returncode == ExitCode.USAGE
    assert done.stderr == f"waymark: {path}: unknown key 'run.phase'; did you mean 'run.phases'?\n"


ORDERS = "\x1b[2J\x9b1m\x07\u202e[red]"


def test_names_in_a_recipe_give_no_orders_to_the_terminal(tmp_path: Path, child_env: dict[str, str]) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(json.dumps({"policy": {"model": ORDERS}, "warm_start": {"checkpoint": f"none{ORDERS}"}}))
    command = [sys.executable, "-m", "cluster", "check", str(path), "--set", f"run.training_tasks=x{ORDERS}"]
    for arguments, code in ((command[:-2], ExitCode.MISSING), (command, ExitCode.USAGE)):
        done = subprocess.run(arguments, capture_output=True, timeout=120, check=False, env=child_env)
        shown = (done.stdout + done.stderr).decode()
        assert done.returncode == code, shown
        assert not set(shown) & set("\x1b\x9b\x07\u202e")
        assert "[red]" in shown


@pytest.mark.parametrize(
    ("override", "name"),
    [
        ("run.environment=nowhere", "environment"),
        ("environments.embedded.names=[nowhere]", "sites"),
        ("policy.device=cuda:7", "policy.device"),
        ("policy.model=/nowhere", "policy.model"),
        ("warm_start.checkpoint=/nowhere", "warm_start.checkpoint"),
    ],
)
@pytest.mark.parametrize("command", [["check"], ["train"]])
def test_what_this_machine_has_not_ends_with_code_3_before_anything_starts(
    recipe: Path, calls: list[tuple[str, Any]], command: list[str], override: str, name: str
) -> None:
    arguments = [*command, str(recipe), "--set", override]
    with pytest.raises(MissingError) as caught:
        RUNNER.invoke(cli.app, arguments, catch_exceptions=False)
    expected = "1 missing" if command == ["check"] else f"{name}: "
    assert expected in str(caught.value)
    assert calls == []


@pytest.mark.parametrize(
    ("override", "name"),
    [
        ("run.environment=nowhere", "environment"),
        ("environments.embedded.names=[nowhere]", "sites"),
        ("policy.device=cuda:7", "policy.device"),
    ],
)
def test_what_this_machine_has_not_for_an_evaluation_ends_with_code_3_too(
    recipe: Path, calls: list[tuple[str, Any]], override: str, name: str
) -> None:
    """A named model and a checkpoint are not looked for: ``--policy`` stands in their place."""
    words = ["eval", str(recipe), "--split", "test", "--policy", "p", "--set", override]
    for other in ("run.seed=0", "policy.model=/nowhere", "warm_start.checkpoint=/nowhere"):
        with pytest.raises(MissingError, match=f"^{name}: ") as caught:
            RUNNER.invoke(cli.app, [*words, "--set", other], catch_exceptions=False)
        assert "/nowhere" not in str(caught.value)
    assert calls == []


def test_a_check_needs_neither_torch_nor_ray_and_answers_soon(recipe: Path, child_env: dict[str, str]) -> None:
    code = (
        "import sys; from cluster.cli import app; sys.argv[1:] = ['check', sys.argv[1]]; app(standalone_mode=False); "
        "print([m for m in ('torch', 'ray', 'transformers') if m in sys.modules])"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code, str(recipe)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True, env=child_env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout.splitlines()[-1] == "[]"
    assert (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime) < 5.0


def test_the_reference_of_the_command_line_lists_every_exit_code() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text()
    for code in ExitCode:
        assert f"| {int(code)} |" in page


def test_tasks_of_a_family_are_printed() -> None:
    done = RUNNER.invoke(
        cli.app, ["sites", "tasks", "--family", "chains", "--split", "test_atoms", "--sites", "code", "--count", "2"],
        catch_exceptions=False,
    )  # fmt: skip
    assert done.exit_code == 0
    assert all(word in done.output for word in ("milestones", "instruction", "company", "code"))
    templates = RUNNER.invoke(cli.app, ["sites", "tasks", "--count", "1", "--sites", "wiki"], catch_exceptions=False)
    assert "What does the encyclopedia say" in " ".join(templates.output.split())


def test_tasks_are_printed_as_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = EmbeddedTasks.drawn

    def two_and_no_more(self: EmbeddedTasks, seed: int, split: str) -> Iterator[Task]:
        yield from islice(drawn(self, seed, split), 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(EmbeddedTasks, "drawn", two_and_no_more)
    done = RUNNER.invoke(cli.app, ["sites", "tasks", "--count", "9", "--sites", "wiki"])
    assert done.exit_code != 0
    assert len(re.findall(r"^wiki ", done.output, flags=re.MULTILINE)) == 2


def test_where_there_are_fewer_tasks_all_are_printed_and_counted() -> None:
    there = sum(1 for _ in EmbeddedTasks(["wiki"]).drawn(0, "validation_templates"))
    options = ["--sites", "wiki", "--split", "validation_templates", "--count", str(there + 1)]
    done = RUNNER.invoke(cli.app, ["sites", "tasks", *options], catch_exceptions=False)
    assert done.exit_code == 0
    said = f"The split validation_templates has {there} different tasks here, and {there + 1} were asked for."
    assert said in done.output
    assert len(re.findall(r"^wiki ", done.output, flags=re.MULTILINE)) == there > 0


def test_more_tasks_than_anybody_reads_are_refused_at_once() -> None:
    done = RUNNER.invoke(cli.app, ["sites", "tasks", "--count", "100000", "--split", "test_templates"])
    assert done.exit_code == 2
    assert "10000" in done.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--family", "chain"], "family must be 'templates' or 'chains', found 'chain'"),
        (["--family", "chains", "--split", "test_templates"], "chains have no split 'test_templates'"),
        (["--split", "test_atoms"], "unknown split 'test_atoms'"),
        (["--sites", "shops"], "no site 'shops'"),
    ],
)
def test_tasks_that_do_not_exist_are_refused(options: list[str], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        RUNNER.invoke(cli.app, ["sites", "tasks", *options], catch_exceptions=False)


def commands(group: typer.core.TyperGroup, before: str = "waymark") -> dict[str, list[tuple[str, ...]]]:
    """The whole line of each command, those of groups too, and the ways to write each of its options."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            found |= commands(command, f"{before} {name}")
        else:
            options = [one for one in command.params if one.param_type_name == "option" and "--help" not in one.opts]
            found[f"{before} {name}"] = [(*one.opts, *one.secondary_opts) for one in options]
    return found


def test_the_reference_has_every_command_with_its_options() -> None:
    told = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    known = commands(typer.main.get_command(cli.app))
    assert "waymark milestones calibrate" in known
    assert [line for line in known if f"| `{line} " not in told] == []
    rows = {line: next(row for row in told.splitlines() if row.startswith(f"| `{line} ")) for line in known}
    lacking = {
        line: missing
        for line, options in known.items()
        if (missing := [ways for ways in options if not any(way in rows[line] for way in ways)])
    }
    assert lacking == {}
