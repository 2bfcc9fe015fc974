"""Sites that are StatefulSets are put back by new pods, which Kubernetes is asked for and waited for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from environments.webarena.reset.in_cluster import InClusterPods
from environments.webarena.reset.kubernetes import KubernetesReset
from environments.webarena.reset.resetters import ResetUnavailable, make_resetter
from environments.webarena.settings import ResetSettings
from records.failures import EpisodeFailed


class Cluster:
    """Stands in for Kubernetes' server: StatefulSets of the deployment "a" that take ``looks`` looks to roll out."""

    def __init__(self, looks: int = 2, status: int = 200) -> None:
        self.looks, self.status = looks, status
        self.sets = {name: {"generation": 1, "seen": 1} for name in ("shopping", "gitlab")}
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if self.status != 200:
            return httpx.Response(self.status, text="forbidden: no such right")
        if request.method == "PATCH":
            self.sets[request.url.path.rpartition("/")[2]]["generation"] += 1
            return httpx.Response(200, json={})
        restarted = any(r.method == "PATCH" for r in self.asked)
        self.looks -= restarted
        named = request.url.params["labelSelector"] == "webarena/deployment=a"
        return httpx.Response(200, json={"items": [self.item(name) for name in self.sets if named]})

    def item(self, name: str) -> dict[str, Any]:
        generation = self.sets[name]["generation"]
        done = self.looks < 0
        status = {"observedGeneration": generation if done else 1, "readyReplicas": 1, "updatedReplicas": 1}
        return {"metadata": {"name": name, "generation": generation}, "spec": {"replicas": 1}, "status": status}


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
