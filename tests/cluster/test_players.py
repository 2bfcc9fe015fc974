"""Who is up takes a publication; who starts is waited for, and never killed for starting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from cluster.errors import ProcessLost, RunStopped
from cluster.players import Players
from cluster.recipe.recipe import build_recipe
from cluster.run_folder.layout import RunFolders
from policy.backend import ServerProcesses, Serving
from policy.client import StartFailed
from policy.publication import Probe
from policy.published_weights import PublishedWeights, current_weights

PROBE = Probe((1, 2), (3,), (-0.5,))
REFUSED = StartFailed("no such model", refused=True)
FULL = StartFailed("its GPU is full")


class Server:
    """Takes whatever it is given; ``during`` happens meanwhile."""

    def __init__(self, name: str, during: Callable[[], None] = lambda: None) -> None:
        self.name, self.took, self._during = name, list[int](), during

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        self.took.append(weights.version)
        self._during()
        return weights

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        return list(PROBE.logprobs)


class Nodes:
    """Says which of the servers start."""

    def __init__(self, starting: set[str]) -> None:
        self.starts, self.required = starting, list[float]()

    def require_one(self, role: str, limit_s: float) -> None:
        self.required.append(limit_s)

    def starting(self, labels: Sequence[str]) -> set[str]:
        return self.starts & set(labels)


def publishing(tmp_path: Path, nodes: Nodes, servers: list[Server]) -> tuple[Any, list[str]]:
    players, replaced = players_of(tmp_path, nodes, servers)
    return players.publish(weights(tmp_path), [PROBE]), replaced


def weights(tmp_path: Path) -> PublishedWeights:
    return PublishedWeights(4, "c" * 64, str(tmp_path / "weights" / "actor-000004.safetensors"))


def players_of(tmp_path: Path, nodes: Nodes, servers: list[Server]) -> tuple[Players, list[str]]:
    replaced: list[str] = []
    recipe, tasks = build_recipe({}, ["policy.publish_timeout_s=20"]), SimpleNamespace()
    players = Players(recipe, RunFolders(tmp_path), tasks, "model", nodes)  # type: ignore[arg-type]
    players._policy = SimpleNamespace(weight_servers=lambda: servers, replace=replaced.append)  # type: ignore[assignment]
    players._servers = ServerProcesses(len(servers), 1.0, 0.0, 100, start_s=300.0)
    players.rollouts = SimpleNamespace(version=-1)  # type: ignore[assignment]
    return players, replaced


def test_a_server_that_starts_is_left_to_take_what_is_published(tmp_path: Path) -> None:
    nodes, servers = Nodes({"server-1"}), [Server("server-0"), Server("server-1")]
    published, replaced = publishing(tmp_path, nodes, servers)
    assert nodes.required == [320.0], "its start and the weights that it takes then"
    assert (published.accepted, published.quarantined, replaced) == (("server-0",), {}, [])
    assert [server.took for server in servers] == [[4], []]
    found = current_weights(RunFolders(tmp_path).current_weights)
    assert found is not None
    assert found.version == 4, "which it reads when it comes up"


@pytest.mark.parametrize(("address", "joined"), [("", False), ("auto", True)])
def test_servers_are_told_whether_who_asks_may_be_on_another_node(
    tmp_path: Path, address: str, joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Told(Exception):
        pass

    def serve(serving: Serving, options: object) -> Any:
        raise Told(serving)

    recipe = build_recipe({"run": {"resources": {"address": address}}})
    monkeypatch.setattr("cluster.players.ray", MagicMock())
    monkeypatch.setattr("cluster.players.HeadWatch", MagicMock())
    monkeypatch.setattr("cluster.players.backend_of", lambda settings: (SimpleNamespace(serve=serve), None))
    players = Players(recipe, RunFolders(tmp_path), SimpleNamespace(), "model", Nodes(set()))  # type: ignore[arg-type]
    monkeypatch.setattr(players, "_explain_lost_head", lambda *error: None)
    with pytest.raises(Told) as told:
        players.__enter__()
    assert told.value.args[0].joined is joined


@pytest.mark.parametrize("first_fails", [False, True])
def test_a_server_that_comes_up_meanwhile_is_published_to(tmp_path: Path, first_fails: bool) -> None:
    nodes = Nodes({"server-1"})
    servers = [Server("server-0", during=nodes.starts.clear), Server("server-1")]
    if first_fails:
        servers[0].score = lambda prompt_ids, action_ids: answer([-9.0])  # type: ignore[method-assign]
    published, replaced = publishing(tmp_path, nodes, servers)
    assert [server.took for server in servers] == [[4], [4]]
    assert published.accepted == (("server-1",) if first_fails else ("server-0", "server-1"))
    assert replaced == (["server-0"] if first_fails else [])
    assert set(published.probe_gaps) == {"server-0", "server-1"}


@pytest.mark.parametrize(
    ("first", "second", "error", "said"),
    [
        (REFUSED, REFUSED, RunStopped, "no policy server can serve what .* policy section asks for: no such model"),
        (REFUSED, FULL, ProcessLost, "no policy server took version 4"),
        (FULL, FULL, ProcessLost, "no policy server took version 4"),
    ],
)
def test_where_every_server_was_told_what_cannot_be_served_another_start_is_not_tried(
    tmp_path: Path, first: Exception, second: Exception, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said) as caught:
        publishing(tmp_path, Nodes(set()), [Server("server-0", fails(first)), Server("server-1", fails(second))])
    assert isinstance(caught.value, ProcessLost) is (error is ProcessLost)


def test_one_server_that_comes_up_shows_that_it_can_be_served(tmp_path: Path) -> None:
    servers = [Server("server-0", fails(REFUSED)), Server("server-1")]
    players, replaced = players_of(tmp_path, Nodes(set()), servers)
    assert players.publish(weights(tmp_path), [PROBE]).accepted == ("server-1",)
    assert replaced == ["server-0"]
    servers[1]._during = fails(REFUSED)
    with pytest.raises(ProcessLost):
        players.publish(weights(tmp_path), [PROBE])


def fails(error: Exception) -> Callable[[], None]:
    def during() -> None:
        raise error

    return during


async def answer(values: list[float]) -> list[float]:
    return values
