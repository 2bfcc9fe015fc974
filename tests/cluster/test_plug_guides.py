"""The guides on what one plugs in show the examples as they are, and their recipes pass their checks."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, fields
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar, get_args, get_type_hints

import pytest
import yaml

from cluster.preflight.doctor import check_tasks
from cluster.preflight.start import check_start
from cluster.recipe.recipe import build_recipe
from cluster.reference.plugs import POINTS, members, plugs_page
from examples.guestbook import GUESTBOOK, BookSettings
from examples.slow_replies import SLOW, SlowSettings, WatchedClient
from examples.webhook import Webhook, WebhookSettings
from policy.backend import backend_of
from policy.client import Completion, Sampling
from records.checks import Status

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guides"
_YAML = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["same_answer", "webhook", "slow_replies"])
def test_the_guide_shows_each_example_as_it_is(name: str) -> None:
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert f"```python\n{source}```" in (GUIDES / "plugs.md").read_text(encoding="utf-8")


def recipes(guide: str) -> list[dict[str, Any]]:
    """The guide's recipes, in order."""
    return [yaml.safe_load(text) for text in _YAML.findall((GUIDES / guide).read_text(encoding="utf-8"))]


def test_the_recipes_of_the_guide_name_what_there_is() -> None:
    judge, monitor, backend = (build_recipe(recipe) for recipe in recipes("plugs.md"))
    assert type(judge.judges_of_run.of_answers("examples.same_answer:SAME")).__name__ == "Same"
    assert isinstance(monitor.monitors["examples.webhook:WEBHOOK"], WebhookSettings)
    found, options = backend_of(backend.policy)
    assert found is SLOW
    assert isinstance(options, SlowSettings)
    assert (options.torch.servers, found.processes(options).count) == (2, 2)


def test_the_recipe_that_trains_on_an_environment_of_ones_own_passes_its_checks() -> None:
    (settings,) = recipes("new-environment.md")
    recipe = build_recipe(settings)
    assert not recipe.clones, "the policy that it starts from knows pages already"
    told = [*check_tasks(recipe), *check_start(recipe)]
    assert [check for check in told if check.status is not Status.OK] == []
    assert len(GUESTBOOK.tasks(BookSettings()).task_set(0, "train", recipe.run.training_tasks)) == 4


class Room(BaseHTTPRequestHandler):
    """A chat room that keeps what it is told."""

    told: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def room() -> Iterator[str]:
    Room.told.clear()
    with HTTPServer(("127.0.0.1", 0), Room) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_room_is_told_evaluations_alone(room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_URL", room)
    monitor = Webhook(tmp_path / "mine", WebhookSettings())
    monitor.numbers(1, "actor", {"loss": 0.5, "odd.success": 1.0})
    monitor.numbers(1, "evaluate", {"splits.test.success": 0.5, "splits.test.n": 8.0})
    monitor.set_aside([(2, "actor"), (1, "evaluate")], tmp_path)
    monitor.set_aside([], tmp_path)
    assert Room.told == ["mine, phase 1: splits.test.success 0.50", "mine: done again from phase 1 on"]


def test_a_room_that_is_not_there_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WEBHOOK_URL", "http://127.0.0.1:9/")
    with caplog.at_level(logging.WARNING):
        Webhook(tmp_path, WebhookSettings()).numbers(1, "evaluate", {"splits.test.success": 0.5})
    assert "nobody was told" in caplog.text


async def test_a_reply_that_took_long_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    completion = Completion((1,), (-0.5,), 3, "stop")

    class Prompt:
        async def complete(self, *_: object, episode: str) -> Completion:
            return completion

    with caplog.at_level(logging.WARNING):
        for slow_s in (1e9, -1.0):
            client = WatchedClient(Prompt(), slow_s)
            assert await client.complete([1], Sampling(), episode=f"episode {slow_s:g}") is completion
    assert [record.getMessage().partition(" waited")[0] for record in caplog.records] == ["episode -1"]


def classes_in(hint: Any) -> Iterator[type]:
    """Waymark's classes in a type, however deep."""
    if isinstance(hint, type) and hint.__module__.partition(".")[0] in {"environments", "judges", "policy", "records"}:
        yield hint
    for inner in [*get_args(hint), *(hint if isinstance(hint, list) else ())]:
        yield from classes_in(inner)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.title)
def test_each_kind_is_on_the_page_with_all_that_its_functions_take_and_return(point: Any) -> None:
    page = plugs_page()
    section = page.split(f"## {point.title}\n", 1)[1].split("\n## ", 1)[0]
    kind = point.registry.kind
    for field in fields(kind):
        assert f"| `{field.name}` |" in section
    assert f"`{point.registry.group}`" in section
    assert all(f"| `{name}` |" in section for name in point.registry.own)
    named = {found for hint in get_type_hints(kind).values() for found in classes_in(hint)}
    shown = {found for found in named if f"### {found.__module__}.{found.__name__}\n" in page}
    assert {found.__name__ for found in named - shown} <= {"BrowserSettings", "PolicySettings"}, (
        "these are in config.md"
    )


@dataclass(frozen=True)
class Bare:
    """Has a method that says nothing."""

    def silent(self) -> None: ...


def test_a_member_without_a_docstring_is_named() -> None:
    with pytest.raises(ValueError, match=r"Bare\.silent: expected a docstring"):
        members(Bare)
