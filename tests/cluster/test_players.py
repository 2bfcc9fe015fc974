"""Who is up takes a publication; who starts is waited for, and never killed for starting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster.players import Players
from cluster.recipe.recipe import build_recipe
from cluster.run_folder.layout import RunFolders
from policy.backend import ServerProcesses
from policy.publication import Probe
from policy.published_weights import PublishedWeights, current_weights

PROBE = Probe((1, 2), (3,), (-0.5,))


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
    replaced: list[str] = []
    recipe, tasks = build_recipe({}, ["policy.publish_timeout_s=20"]), SimpleNamespace()
    players = Players(recipe, RunFolders(tmp_path), tasks, "model", nodes)  # type: ignore[arg-type]
    players._policy = SimpleNamespace(weight_servers=lambda: servers, replace=replaced.append)  # type: ignore[assignment]
    players._servers = ServerProcesses(len(servers), 1.0, 0.0, 100, start_s=300.0)
    players.rollouts = SimpleNamespace(version=-1)  # type: ignore[assignment]
    weights = PublishedWeights(4, "c" * 64, str(tmp_path / "weights" / "actor-000004.safetensors"))
    return players.publish(weights, [PROBE]), replaced


def test_a_server_that_starts_is_left_to_take_what_is_published(tmp_path: Path) -> None:
    nodes, servers = Nodes({"server-1"}), [Server("server-0"), Server("server-1")]
    published, replaced = publishing(tmp_path, nodes, servers)
    assert nodes.required == [320.0], "its start and the weights that it takes then"
    assert (published.accepted, published.quarantined, replaced) == (("server-0",), {}, [])
    assert [server.took for server in servers] == [[4], []]
    found = current_weights(RunFolders(tmp_path).current_weights)
    assert found is not None
    assert found.version == 4, "which it reads when it comes up"


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


async def answer(values: list[float]) -> list[float]:
    return values
