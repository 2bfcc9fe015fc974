"""Applications that others wrote, played as sites of ``run.environment: webarena`` by configuration alone."""

import asyncio
import json

import pytest

from benchmarks.applications import application
from benchmarks.applications.catalogue import APPLICATIONS
from benchmarks.applications.experts import EXPERTS
from benchmarks.applications.installing import NotInstalled, installed
from benchmarks.applications.playing import moves, play
from benchmarks.applications.serving import Serving
from benchmarks.applications.session import playing_on
from environments.webarena.tasks.files import load_tasks
from records.environment import Element, Observation

QUICK = "booking"
PARAMETERS = [pytest.param(name, marks=[] if name == QUICK else [pytest.mark.lengthy]) for name in sorted(APPLICATIONS)]


async def scores(name: str) -> tuple[list[float], list[float]]:
    """Outcomes of every task of an application when nothing is done, and when its expert plays it."""
    app = APPLICATIONS[name]
    with Serving(app) as serving:
        async with playing_on(app, serving, idle=True) as (environment, tasks):
            idle = [(await play(environment, task, ())).verdict for task in tasks]
        async with playing_on(app, serving) as (environment, tasks):
            scripts = zip(tasks, EXPERTS[name], strict=True)
            done = [(await play(environment, task, script)).verdict for task, script in scripts]
    print([(task.task_id, verdict) for task, verdict in zip(tasks, done, strict=True) if not verdict.outcome])
    return [verdict.outcome for verdict in idle], [verdict.outcome for verdict in done]


@pytest.mark.browser
@pytest.mark.parametrize("name", PARAMETERS)
def test_experts_solve_every_task_and_doing_nothing_solves_none(name: str) -> None:
    try:
        installed(APPLICATIONS[name])
    except NotInstalled as error:
        pytest.skip(f"the packages cannot be installed here: {error}")
    idle, done = asyncio.run(scores(name))
    assert idle == [0.0] * 5
    assert done == [1.0] * 5


@pytest.mark.parametrize("name", sorted(APPLICATIONS))
def test_each_has_five_tasks_on_its_own_site_and_a_script_for_each(name: str) -> None:
    app = APPLICATIONS[name]
    tasks = load_tasks(app.tasks, names=(name,))
    assert [task.sites for task in tasks] == [(name,)] * 5
    assert len(EXPERTS[name]) == 5
    assert app.pip or app.npm
    assert all("==" in package or "@" in package[1:] for package in (*app.pip, *app.npm)), "versions are named"


def test_task_numbers_are_used_once() -> None:
    numbers = [task["task_id"] for app in APPLICATIONS.values() for task in json.loads(app.tasks.read_text())]
    assert len(numbers) == len(set(numbers))


def test_an_application_is_told_by_configuration_alone() -> None:
    app = APPLICATIONS[QUICK]
    options = application.options_of(app, "http://127.0.0.1:1", ["true"])
    assert json.loads(json.dumps(options)) == options
    assert set(options) <= {"sites", "login_forms", "task_files", "deployments", "credentials_file"}


def test_a_script_names_elements_by_role_place_and_beginning() -> None:
    elements = (Element(0, "button", "Go"), Element(1, "link", "Go"), Element(2, "link", "Go on"))
    seen = Observation("", "__X__/", "", "", elements)
    by_role, second, beginning, typed = moves("click link: Go\nclick Go [1]\nclick Go o…\ntype Go = a = b")
    assert [move.action(seen).element_id for move in (by_role, second, beginning, typed)] == [1, 1, 2, 0]
    assert typed.text == "a = b"
    with pytest.raises(LookupError, match="Stay"):
        moves("click Stay")[0].action(seen)
    with pytest.raises(ValueError, match="expected kind"):
        moves("Click me")
