"""The table of pages is complete, splits do not leak, and the page server hands out pages and nothing else."""

import http.client
import importlib.util
import random
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from cluster.recipe.recipe import build_recipe
from cluster.task_sets import TaskSets
from environments.miniwob.page_server import PageServer, page_folder
from environments.miniwob.pages import EXCLUDED, PAGES
from environments.miniwob.tasks import SPLITS, MiniwobTasks, make_task
from records.failures import EpisodeFailed

installed = pytest.mark.skipif(
    find_spec("miniwob") is None, reason="the package miniwob is not installed: see `make setup`"
)
TASKS = MiniwobTasks()


@installed
def test_every_page_of_the_package_is_played_or_excluded_for_a_reason() -> None:
    folder = page_folder()
    there = {path.stem for path in (folder / "miniwob").glob("*.html")}
    there |= {f"flight/{path.parent.name}" for path in (folder / "flight").glob("*/wrapper.html")}
    assert set(PAGES) | set(EXCLUDED) == there
    assert not set(PAGES) & set(EXCLUDED)
    assert len(PAGES) >= 100
    assert all(len(reason) > 20 for reason in EXCLUDED.values())


def test_the_documentation_names_every_page_that_is_not_played_and_every_aid() -> None:
    text = (Path(__file__).parents[2] / "docs" / "environments.md").read_text(encoding="utf-8")
    section = text.partition("\n## MiniWoB++\n")[2].partition("\n## ")[0]
    aids, excluded = section.split("### Pages that are not played")
    assert {name for name in EXCLUDED if f"`{name}`" not in excluded} == set()
    rows = {row.split(" | ")[0].strip("| "): row for row in aids.split("\n") if row.startswith("| ")}
    for page in PAGES.values():
        assert all(f"`{page.name}`" in rows[aid] for aid in page.aids), page.name


def test_variants_of_a_page_are_in_one_split() -> None:
    for page in PAGES.values():
        variants = [other for other in PAGES.values() if other.name.startswith(f"{page.name}-")]
        assert {page.split} >= {other.split for other in variants}, page.name


def test_splits_share_no_task_and_held_out_ones_no_page() -> None:
    sets = {split: TASKS.task_set(7, split, 300) for split in SPLITS}
    ids = [task.task_id for tasks in sets.values() for task in tasks]
    assert len(set(ids)) == len(ids) == 5 * 300
    assert all(task.split == split for split, tasks in sets.items() for task in tasks)
    pages = {split: {task.template for task in tasks} for split, tasks in sets.items()}
    assert pages["train"] == pages["validation"] == pages["test"]
    assert not pages["train"] & (pages["validation_templates"] | pages["test_templates"])
    assert not pages["validation_templates"] & pages["test_templates"]
    assert sum(map(len, (pages["train"], pages["validation_templates"], pages["test_templates"]))) == len(PAGES)


def test_a_set_depends_on_its_seed_alone_and_other_seeds_keep_the_splits() -> None:
    assert TASKS.task_set(1, "train", 50) == TASKS.task_set(1, "train", 50)
    assert TASKS.task_set(1, "train", 50) != TASKS.task_set(2, "train", 50)
    train = {task.task_id for seed in range(5) for task in TASKS.task_set(seed, "train", 200)}
    assert not train & {task.task_id for task in TASKS.task_set(9, "test", 200)}


def test_a_task_can_be_made_again_and_varied() -> None:
    task = TASKS.task_set(1, "train", 1)[0]
    assert TASKS.task(task.template, task.parameters) == task
    other = TASKS.similar(task, random.Random(1))
    assert other is not None
    assert (other.template, other.split) == (task.template, "train")
    assert other != task
    assert TASKS.similar(make_task("click-dialog", 1), random.Random(1)) is None


def test_what_does_not_exist_is_named() -> None:
    with pytest.raises(KeyError, match="no page 'drag-box' is played"):
        TASKS.task("miniwob.drag-box", {"page": "drag-box", "seed": 1})
    with pytest.raises(ValueError, match="unknown split 'dev'"):
        TASKS.task_set(1, "dev", 1)


def test_a_recipe_that_names_miniwob_draws_its_tasks() -> None:
    run = {"environment": "miniwob", "training_tasks": 200, "evaluation": {"tasks_per_split": 40}}
    sets = TaskSets(build_recipe({"run": run, "curriculum": {"tasks_per_phase": 30}}))
    assert {task.site for task in sets.training.tasks} == {"miniwob"}
    first = sets.rollouts(1, None)
    chosen = sets.choose(2, [first[0].task.task_id], first, {}).tasks
    second = sets.rollouts(2, chosen)
    assert {spec.task.split for spec in (*first, *second)} == {"train"}
    splits = build_recipe({"run": run}).run.evaluation.splits
    assert {spec.task.split for spec in sets.evaluation(1)} == set(splits)
    assert splits


@pytest.fixture
def served(tmp_path: Path) -> Iterator[int]:
    folder = tmp_path / "html"
    (folder / "miniwob").mkdir(parents=True)
    (folder / "miniwob" / "click-test.html").write_text("<p>a page</p>")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "way-out.txt").symlink_to(tmp_path / "secret.txt")
    server = PageServer(folder)
    server.start()
    yield server.port
    server.close()


def ask(port: int, path: str, host: str = "miniwob.e1.localhost") -> tuple[int, str]:
    """Send a path as it is, without the cleaning that browsers and clients do."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", f"{host}:{port}")
    connection.endheaders()
    with connection.getresponse() as reply:
        found = reply.status, reply.read().decode()
    connection.close()
    return found


def test_a_page_is_served(served: int) -> None:
    assert ask(served, "/miniwob/click-test.html") == (200, "<p>a page</p>")


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/miniwob/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/miniwob/%2e%2e/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/..%5csecret.txt",
        "//etc/passwd",
        "/way-out.txt",
        "/miniwob/",
        "/miniwob",
        "/",
    ],
)
def test_nothing_else_is_served(served: int, path: str) -> None:
    status, text = ask(served, path)
    assert status in (404, 405)
    assert "secret" not in text


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1"])
def test_other_host_names_are_refused(served: int, host: str) -> None:
    assert ask(served, "/miniwob/click-test.html", host)[0] == 400


def test_a_closed_server_answers_nobody(tmp_path: Path) -> None:
    server = PageServer(tmp_path)
    server.start()
    server.close()
    server.close()
    with pytest.raises(ConnectionRefusedError):
        ask(server.port, "/")


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EpisodeFailed, match="infra/pages_missing: the MiniWoB.. pages are not installed; `make setup`"):
        page_folder()
