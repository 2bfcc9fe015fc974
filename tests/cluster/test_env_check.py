"""``waymark env check`` says which points of the contract an environment keeps, and how fast it is."""

from __future__ import annotations

import asyncio
import inspect
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cluster import cli
from cluster.commands.environments import check_environment
from cluster.errors import ExitCode, MissingError, RecipeError
from cluster.preflight.environment import check_environment_kind
from cluster.recipe.recipe import build_recipe, config_hash, resolved
from cluster.task_sets import TaskSets
from environments.browser.settings import BrowserSettings
from environments.browserless.environment import BrowserlessEnvironment
from environments.browserless.host import BrowserlessHost
from environments.contract import POINT_DEADLINE_S
from environments.embedded.kind import BROWSERLESS
from environments.environment import Environment
from environments.kinds import KINDS, EnvironmentKind, make_host
from environments.task_sources import ListedTasks
from examples.guestbook import GUESTBOOK, BookSettings
from judges.verdicts import Evaluators
from records.deadline import Deadline
from records.environment import Action, Observation
from records.episodes import Task
from records.failures import EpisodeFailed, Failure, FailureCode, FailureKind
from sites.settings import SitesSettings

RUNNER = CliRunner()
ROOT = Path(__file__).resolve().parents[2]
HERE = "tests.cluster.test_env_check"
POINTS = 7


class Silent(BrowserlessEnvironment):
    """Tells the agent nothing."""

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        return replace(await super().step(action, deadline), feedback=None)


class Broken(BrowserlessEnvironment):
    """Has a bug."""

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        raise ZeroDivisionError("a bug in the environment")


class HostOf(BrowserlessHost):
    """A host of one of the environments above."""

    kind: type[BrowserlessEnvironment] = Silent

    async def environment(self) -> Environment:
        assert self._app is not None
        return self.kind(self._app, self._browser, self._judge)


class HostOfBroken(HostOf):
    kind = Broken


class HostThatFails(BrowserlessHost):
    async def start(self) -> None:
        raise EpisodeFailed(
            Failure(FailureCode("no_server", FailureKind.INFRA), f"nobody is there, with {self._settings}")
        )


class NoHost:
    """Lacks most of what a host needs."""

    def __init__(self, settings: SitesSettings, connection: None, browser: BrowserSettings, judge: object) -> None:
        self.settings = settings

    async def start(self) -> None:
        return None


def kind_of(host: type[BrowserlessHost]) -> EnvironmentKind[Any, Any]:
    return replace(BROWSERLESS, host=lambda settings, connection, browser, judge: host(settings, browser, judge))


NUMBER = 7
SILENT, BROKEN, STARTLESS = kind_of(HostOf), kind_of(HostOfBroken), kind_of(HostThatFails)
HOSTLESS = replace(BROWSERLESS, host=NoHost)  # type: ignore[arg-type]
NO_TASKS = replace(BROWSERLESS, tasks=lambda settings: ListedTasks([]))


def check(path: str, *more: str) -> str:
    return RUNNER.invoke(cli.app, ["env", "check", path, "--seconds", "0.3", *more], catch_exceptions=False).output


def test_every_point_that_is_kept_is_named_and_what_was_measured_is_shown() -> None:
    done = RUNNER.invoke(cli.app, ["env", "check", "browserless", "--seconds", "0.3"], catch_exceptions=False)
    assert done.exit_code == ExitCode.OK
    assert done.output.count("ok    ") == POINTS
    assert "FAIL" not in done.output
    for text in ("a second reset starts where the first one did", "steps/s", "reset ms", "none"):
        assert text in done.output


def test_a_point_that_is_not_kept_is_named_with_what_was_found_and_ends_with_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["waymark", "env", "check", f"{HERE}:SILENT", "--seconds", "0.3"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == ExitCode.FAILED
    said = capsys.readouterr()
    assert "FAIL  what is impossible is told and changes nothing" in said.out
    assert "expected feedback that it could not be done, found none" in said.out
    assert said.out.count("ok    ") == POINTS - 1
    assert f"{HERE}:SILENT breaks 1 of {POINTS} points of the contract" in said.err


def test_an_error_in_the_environment_breaks_the_points_that_meet_it_and_no_others() -> None:
    found = check_environment_kind(f"{HERE}:BROKEN", seconds=0.1)
    assert found.measured == ()
    broken = {point.promise: point.broken for point in found.points if point.broken}
    assert len(broken) == 3
    assert all(lines == ("- raised ZeroDivisionError: a bug in the environment",) for lines in broken.values())


class Picky(BrowserlessEnvironment):
    """Fails with tasks of all templates but the one that it meets first."""

    liked: str | None = None

    async def reset(self, task: Task, **options: Any) -> Observation:
        Picky.liked = Picky.liked or task.template
        if task.template != Picky.liked:
            raise ZeroDivisionError(f"a bug with {task.template}")
        return await super().reset(task, **options)


class HostOfPicky(HostOf):
    kind = Picky


PICKY = kind_of(HostOfPicky)


def test_an_environment_is_examined_on_tasks_of_unlike_templates() -> None:
    assert check_environment_kind(f"{HERE}:PICKY", tasks=1, seconds=0.1, slots=()).broken == 0
    found = check_environment_kind(f"{HERE}:PICKY", seconds=0.1)
    assert [task.template == Picky.liked for task in found.tasks] == [True, False]
    assert f"a bug with {found.tasks[1].template}" in str(found.points)


class Stuck(BrowserlessEnvironment):
    """Never answers an action."""

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        return await asyncio.Event().wait()  # type: ignore[return-value]


class HostOfStuck(HostOf):
    kind = Stuck


STUCK = kind_of(HostOfStuck)


def test_each_point_has_as_long_as_the_command_line_says() -> None:
    found = check_environment_kind(f"{HERE}:STUCK", seconds=0.1, deadline_s=3.0)
    assert "raised TimeoutError: no end after 3 s" in str(found.points)
    usual = inspect.signature(check_environment).parameters["deadline"].default
    assert usual == POINT_DEADLINE_S


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("nowhere", "expected an environment out of .*browserless.*, or 'module:name', found 'nowhere'"),
        ("no_such_module:host", "cannot import 'no_such_module'; is it on the Python path"),
        (f"{HERE}:Nothing", f"module '{HERE}' has no 'Nothing'"),
        (f"{HERE}:NUMBER", "expected an environment .EnvironmentKind., found a int"),
        (f"{HERE}:HOSTLESS", "expected a host with the methods .* found a NoHost without environment, alive, close"),
        (f"{HERE}:NO_TASKS", "split 'train' has 0 tasks, 1 were asked for"),
    ],
)
def test_a_wrong_path_says_what_was_expected(path: str, complaint: str) -> None:
    with pytest.raises(RecipeError, match=complaint):
        check(path)


def test_a_host_that_does_not_start_is_something_missing() -> None:
    with pytest.raises(MissingError, match="its host did not start: infra/no_server: nobody is there"):
        check(f"{HERE}:STARTLESS")


def test_options_reach_the_host_and_must_be_json() -> None:
    with pytest.raises(MissingError, match=r"nobody is there, with SitesSettings\(names=\('map',\)"):
        check(f"{HERE}:STARTLESS", "--options", '{"names": ["map"]}')
    with pytest.raises(RecipeError):
        check("browserless", "--options", "{deployment")
    with pytest.raises(RecipeError, match="unknown key 'webarena.task_file'; did you mean 'webarena.task_files'"):
        check("webarena", "--options", '{"task_file": {}}')


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers an environment, as pip would leave it."""
    folder = tmp_path / "bookshelf-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: bookshelf\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[waymark.environments]\nbook = examples.guestbook:GUESTBOOK\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_an_installed_package_adds_an_environment_by_its_entry_point(installed: None) -> None:
    assert EntryPoint("book", "examples.guestbook:GUESTBOOK", "waymark.environments").load() is GUESTBOOK
    assert KINDS.find("book") is GUESTBOOK
    with pytest.raises(ValueError, match="out of book, browserless, embedded"):
        KINDS.find("bok")


def test_a_recipe_plays_the_tasks_that_its_environment_brings(installed: None) -> None:
    recipe = build_recipe(
        {
            "run": {
                "environment": "book",
                "training_tasks": 4,
                "evaluation": {"splits": ["test"], "tasks_per_split": 2},
            },
            "curriculum": {"tasks_per_phase": 4},
        }
    )
    tasks = TaskSets(recipe)
    assert {task.template for task in tasks.training} == {"book.sign"}
    assert {task.intent for task in tasks.split("test")} == {
        "Sign the guest book as Eva.", "Sign the guest book as Finn."
    }  # fmt: skip
    chosen = tasks.choose(2, [task.task_id for task in tasks.training], tasks.rollouts(1, None), {}).tasks
    assert {spec.task.task_id for spec in tasks.rollouts(2, chosen)} <= {task.task_id for task in tasks.training}
    assert {spec.task.site for spec in tasks.demonstrations("demo", 10)} <= {"shop", "forum"}


@pytest.mark.parametrize("name", ["book", "examples.guestbook:GUESTBOOK"])
def test_a_recipe_hands_an_environment_of_ones_own_its_options(installed: None, name: str) -> None:
    raw = {"run": {"environment": name, "training_tasks": 2}, "environments": {name: {"signers": ["Gus", "Hal"]}}}
    recipe = build_recipe(raw)
    assert {task.task_id for task in TaskSets(recipe)._source.task_set(0, "train", 2)} == {"book.Gus", "book.Hal"}
    assert recipe.environment_settings(name) == BookSettings(("Gus", "Hal"))
    assert build_recipe(resolved(recipe)) == recipe
    assert config_hash(recipe) != config_hash(build_recipe({"run": raw["run"]}))
    assert build_recipe(raw, [f"environments.{name}.signers=[Ina]"]).environment_settings(name) == BookSettings(
        ("Ina",)
    )
    with pytest.raises(RecipeError, match=f"unknown key 'environments.{name}.signer'; did you mean .*signers'"):
        build_recipe({"environments": {name: {"signer": []}}})


def test_an_environment_with_few_tasks_gives_what_it_has_to_whom_that_is_enough(installed: None) -> None:
    source = KINDS.find("book").tasks(BookSettings())
    everything = source.task_set(0, "train", 4)
    assert source.task_set(0, "train", 8, at_least=1) == everything
    assert len(source.task_set(0, "train", 3, at_least=1)) == 3
    with pytest.raises(ValueError, match="split 'train' has 4 tasks, 8 were asked for"):
        source.task_set(0, "train", 8)


def test_a_recipe_with_an_unknown_environment_says_which_there_are() -> None:
    with pytest.raises(RecipeError, match="run.environment: expected an environment out of"):
        TaskSets(build_recipe({"run": {"environment": "cloud"}}))


def test_the_example_of_the_guide_is_the_file_and_short() -> None:
    source = (ROOT / "examples" / "guestbook.py").read_text()
    guide = (ROOT / "docs" / "guides" / "new-environment.md").read_text()
    assert f"```python\n{source}```" in guide
    assert len(source.splitlines()) < 100


@pytest.mark.browser
def test_the_example_of_the_guide_keeps_the_contract() -> None:
    found = check_environment_kind("examples.guestbook:GUESTBOOK", seconds=5.0, slots=(2,))
    assert [point for point in found.points if point.broken] == []
    assert found.measured[0].steps_s
    assert not found.measured[0].failures


@pytest.mark.browser
async def test_the_example_of_the_guide_can_be_solved() -> None:
    host = make_host("examples.guestbook:GUESTBOOK", {}, None, BrowserSettings(), Evaluators())
    await host.start()
    try:
        env, (task,) = (
            await host.environment(),
            GUESTBOOK.tasks(BookSettings()).task_set(0, "test", 1),
        )
        seen = await env.reset(task)
        assert (await env.evaluate("done")).outcome == 0.0
        seen = await env.step(Action("click", element_id=seen.find("Sign", "link").element_id))
        seen = await env.step(Action("type", task.parameters["name"], seen.find("Name").element_id))
        seen = await env.step(Action("click", element_id=seen.find("Sign", "button").element_id))
        assert seen.url == "__BOOK__/"
        assert (await env.evaluate("done")).outcome == 1.0
        await env.close()
    finally:
        await host.close()
