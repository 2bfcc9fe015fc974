"""The pods that a user applies by hand, to copy files to volumes before a run begins."""

from __future__ import annotations

import pytest

from tests.deploy.manifests import DEPLOY, Document, example, of_kind, pods, read, selects
from tests.deploy.rules import breaches

WAITING = [pod for path in sorted(DEPLOY.rglob("*-pod*.yaml")) for pod in read(path) if pod["kind"] == "Pod"]


def claims(pod: Document) -> set[str]:
    """Return the volumes that a pod may write to."""
    read_only = {mount["name"] for c in pod["containers"] for mount in c["volumeMounts"] if mount.get("readOnly")}
    return {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in pod.get("volumes", [])
        if "persistentVolumeClaim" in volume and volume["name"] not in read_only
    }


def test_every_volume_of_webarena_has_a_pod_to_copy_files_by() -> None:
    made = {claim["metadata"]["name"] for claim in of_kind(example("webarena"), "PersistentVolumeClaim")}
    assert {claim for pod in WAITING for claim in claims(pod["spec"])} == made


def test_who_shares_a_volume_of_one_machine_stands_on_that_machine() -> None:
    documents = example("webarena")
    single = {
        claim["metadata"]["name"]
        for claim in of_kind(documents, "PersistentVolumeClaim")
        if "ReadWriteMany" not in claim["spec"]["accessModes"]
    }
    shared = {
        volume["persistentVolumeClaim"]["claimName"]: labels
        for _, labels, pod in pods(documents)
        for volume in pod.get("volumes", [])
        if volume.get("persistentVolumeClaim", {}).get("claimName") in single
    }
    for pod in WAITING:
        for claim in claims(pod["spec"]) & single:
            near = pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            assert [one["topologyKey"] for one in near] == ["kubernetes.io/hostname"]
            beside = [labels for _, labels, _ in pods(documents) if selects(near[0]["labelSelector"], labels)]
            assert beside == [shared[claim]]


@pytest.mark.parametrize("pod", WAITING, ids=lambda pod: pod["metadata"]["name"])
def test_such_a_pod_keeps_the_rules_of_pods(pod: Document) -> None:
    import kubernetes_validate

    kubernetes_validate.validate(pod, "1.34", strict=True)
    assert pod["metadata"]["namespace"] == "waymark"
    workload = {
        "kind": "Deployment",
        "metadata": {"name": pod["metadata"]["name"]},
        "spec": {"template": {"metadata": pod["metadata"], "spec": pod["spec"]}},
    }
    assert breaches([*example("webarena"), workload]) == {}
