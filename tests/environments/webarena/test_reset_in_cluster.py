"""Sites that are StatefulSets are put back by new pods, which Kubernetes is asked for and waited for."""

from __future__ import annotations

import asyncio
import json
import platform
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from environments.webarena.leases.resets import Resets
from environments.webarena.reset.in_cluster import DeploymentInUse, InClusterPods
from environments.webarena.reset.kubernetes import KubernetesReset
from environments.webarena.reset.resetters import ResetUnavailable, make_resetter
from environments.webarena.settings import ResetSettings
from records.failures import EpisodeFailed
from records.supervision import end_tasks


class Cluster:
    """Stands in for Kubernetes' server: StatefulSets of the deployment "a" that take ``looks`` looks to roll out."""

    def __init__(self, looks: int = 2, status: int = 200) -> None:
        self.looks, self.status = looks, status
        self.sets = {name: {"generation": 1, "seen": 1, "version": 1} for name in ("shopping", "gitlab")}
        self.said: dict[str, str] = {}
        self.late = 0
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if self.status != 200:
            return httpx.Response(self.status, text="forbidden: no such right")
        if request.method == "PATCH":
            return self.patch(request.url.path.rpartition("/")[2], json.loads(request.content))
        restarted = any(r.method == "PATCH" for r in self.asked)
        self.looks -= restarted
        named = request.url.params["labelSelector"] == "webarena/deployment=a"
        return httpx.Response(200, json={"items": [self.item(name) for name in self.sets if named]})

    def patch(self, name: str, body: dict[str, Any]) -> httpx.Response:
        """Merge a patch, unless it was made from another version; ``late`` ones find that it just changed."""
        changed, metadata = self.sets[name], body.get("metadata", {})
        if self.late and metadata:
            self.late -= 1
            changed["version"] += 1
        if metadata.get("resourceVersion", str(changed["version"])) != str(changed["version"]):
            return httpx.Response(409, text="the object has been modified")
        changed["version"] += 1
        changed["generation"] += "spec" in body
        for key, value in metadata.get("annotations", {}).items():
            self.said = {k: v for k, v in self.said.items() if k != key} | ({key: value} if value is not None else {})
        return httpx.Response(200, json={})

    def item(self, name: str) -> dict[str, Any]:
        generation = self.sets[name]["generation"]
        done = self.looks < 0
        status = {"observedGeneration": generation if done else 1, "readyReplicas": 1, "updatedReplicas": 1}
        metadata = {"name": name, "generation": generation, "resourceVersion": str(self.sets[name]["version"])}
        if name == "shopping" and self.said:
            metadata["annotations"] = dict(self.said)
        return {"metadata": metadata, "spec": {"replicas": 1}, "status": status}


def account(folder: Path) -> Path:
    for name, text in {"token": "first", "namespace": "waymark", "ca.crt": "-"}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def pods(folder: Path, cluster: Cluster) -> InClusterPods:
    return InClusterPods(account(folder), httpx.MockTransport(cluster))


async def test_every_stateful_set_of_a_deployment_gets_new_pods_and_is_waited_for(tmp_path: Path) -> None:
    cluster = Cluster()
    await KubernetesReset(pods(tmp_path, cluster), timeout_s=30, poll_s=0.001).reset("a")
    patched = [r for r in cluster.asked if r.method == "PATCH"]
    assert [r.url.path for r in patched] == [
        "/apis/apps/v1/namespaces/waymark/statefulsets/shopping",
        "/apis/apps/v1/namespaces/waymark/statefulsets/gitlab",
    ]
    annotations = json.loads(patched[0].content)["spec"]["template"]["metadata"]["annotations"]
    assert list(annotations) == ["waymark/reset-at"]
    assert cluster.looks == -1


@pytest.mark.parametrize(
    "status",
    [
        {"observedGeneration": 1, "readyReplicas": 2, "updatedReplicas": 2},
        {"observedGeneration": 2, "readyReplicas": 1, "updatedReplicas": 2},
        {"observedGeneration": 2, "readyReplicas": 2, "updatedReplicas": 1},
        {},
    ],
)
async def test_sites_are_pending_until_all_pods_are_new_and_ready(tmp_path: Path, status: dict[str, int]) -> None:
    item = {"metadata": {"name": "shopping", "generation": 2}, "spec": {"replicas": 2}, "status": status}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"items": [item]}))
    assert await InClusterPods(account(tmp_path), transport).pending("a") == ["shopping"]


async def test_a_token_that_was_changed_is_read_again(tmp_path: Path) -> None:
    cluster = Cluster()
    made = pods(tmp_path, cluster)
    await made.pending("a")
    (tmp_path / "token").write_text("second", encoding="utf-8")
    await made.pending("a")
    assert [r.headers["Authorization"] for r in cluster.asked] == ["Bearer first", "Bearer second"]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beats follow one another at once, and so do looks for one."""
    for name, value in {"_BEAT_S": 0.05, "_GONE_S": 60.0, "_LOOK_S": 0.005}.items():
        monkeypatch.setattr(f"environments.webarena.reset.in_cluster.{name}", value)


async def end(*made: InClusterPods) -> None:
    """Cancel what goes on in the background, as ``Resets`` does."""
    await end_tasks(*(beat for one in made for beat in one._beats.values()))


async def test_a_deployment_is_held_from_its_first_restart_until_its_run_ends(tmp_path: Path, hasty: None) -> None:
    cluster = Cluster()
    first, second = pods(tmp_path, cluster), pods(tmp_path, cluster)
    await first.restart("a")
    holder, beat = cluster.said["waymark/held-by"], cluster.said["waymark/held-at"]
    assert holder.startswith(platform.node())
    reset = KubernetesReset(second, timeout_s=30, poll_s=0.001)
    with pytest.raises(EpisodeFailed, match=rf"the deployment a is in use by {re.escape(holder)}"):
        await reset.reset("a")
    assert cluster.said["waymark/held-at"] > beat
    assert cluster.sets["gitlab"]["generation"] == 2, "the one that was refused restarted nothing"
    await first.restart("a")
    await end(first)
    assert cluster.said == {}
    await second.restart("a")
    assert cluster.said["waymark/held-by"] not in ("", holder)
    await end(second)


async def test_a_holder_that_says_nothing_for_long_enough_loses_the_deployment(
    tmp_path: Path, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("environments.webarena.reset.in_cluster._GONE_S", 0.1)
    cluster = Cluster()
    cluster.said = {"waymark/held-by": "a-head-that-died (1)", "waymark/held-at": "3026-01-01T00:00:00+00:00"}
    await (late := pods(tmp_path, cluster)).restart("a")
    assert cluster.said["waymark/held-by"].startswith(platform.node())
    await end(late)


async def test_who_lost_a_deployment_says_so_and_restarts_nothing_more(
    tmp_path: Path, hasty: None, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    await (first := pods(tmp_path, cluster)).restart("a")
    cluster.said = {"waymark/held-by": "another (2)", "waymark/held-at": "now"}
    cluster.sets["shopping"]["version"] += 1
    await asyncio.wait([first._beats["a"]], timeout=30)
    assert first._beats["a"].done()
    assert "in use by another (2)" in caplog.text
    assert cluster.said["waymark/held-by"] == "another (2)"


async def test_a_swap_that_came_too_late_is_tried_again_and_lets_one_of_two_win(tmp_path: Path, hasty: None) -> None:
    cluster = Cluster()
    cluster.late = 3
    one, other = pods(tmp_path, cluster), pods(tmp_path, cluster)
    ended = await asyncio.gather(one.restart("a"), other.restart("a"), return_exceptions=True)
    assert sorted(type(end) for end in ended if end is not None) == [DeploymentInUse]
    assert cluster.late == 0
    await end(one, other)


def test_a_run_that_ends_gives_its_deployments_back(tmp_path: Path) -> None:
    cluster = Cluster()
    with Resets({"a": KubernetesReset(pods(tmp_path, cluster), timeout_s=30, poll_s=0.001)}) as resets:
        resets.begin("a")
        ended = resets._ended.get(timeout=30)
        assert ended == ("a", "")
        assert cluster.said
    assert cluster.said == {}


async def test_a_deployment_that_no_stateful_set_carries_is_told_by_name(tmp_path: Path) -> None:
    reset = KubernetesReset(pods(tmp_path, Cluster()), timeout_s=30, poll_s=0.001)
    with pytest.raises(EpisodeFailed, match="no StatefulSet has the label webarena/deployment=b"):
        await reset.reset("b")


async def test_what_kubernetes_refuses_or_does_not_answer_is_a_failed_reset(tmp_path: Path) -> None:
    def gone(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    refusing = KubernetesReset(pods(tmp_path, Cluster(status=403)), timeout_s=30, poll_s=0.001)
    with pytest.raises(EpisodeFailed, match="status 403: forbidden: no such right"):
        await refusing.reset("a")
    silent = InClusterPods(account(tmp_path), httpx.MockTransport(gone))
    with pytest.raises(EpisodeFailed, match="OSError: https://kubernetes.default.svc does not answer"):
        await KubernetesReset(silent, timeout_s=30, poll_s=0.001).reset("a")


def test_outside_a_cluster_the_reset_says_what_is_missing() -> None:
    with pytest.raises(ResetUnavailable, match="a pod's service account in .*, found no token, namespace, ca.crt"):
        make_resetter(ResetSettings(kind="kubernetes"))
