"""The rendered manifests as tests read them: documents by kind, and the parts of a Ray cluster in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
RENDERED = DEPLOY / "kubernetes" / "rendered"
STANDING_RUN = DEPLOY / "kubernetes" / "examples" / "standing" / "run.yaml"

Document = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """The head or a worker group: its name, its specification, its first container."""

    name: str
    spec: Document

    @property
    def pod(self) -> Document:
        return self.spec["template"]["spec"]

    @property
    def labels(self) -> dict[str, str]:
        return self.spec["template"]["metadata"]["labels"]

    @property
    def containers(self) -> list[Document]:
        return self.pod["containers"]

    @property
    def ray(self) -> Document:
        return self.containers[0]

    @property
    def environment(self) -> dict[str, Document]:
        return {variable["name"]: variable for variable in self.ray.get("env", [])}

    @property
    def start(self) -> dict[str, str]:
        return self.spec.get("rayStartParams", {})

    def volume_at(self, path: str) -> Document:
        mounted = {mount["mountPath"]: mount["name"] for mount in self.ray.get("volumeMounts", [])}
        return next((v for v in self.pod.get("volumes", []) if v["name"] == mounted.get(path)), {})


def example_names() -> list[str]:
    return sorted(path.stem for path in RENDERED.glob("*.yaml"))


def read(path: Path) -> list[Document]:
    return list(yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))


def example(name: str) -> list[Document]:
    """Return an example's documents; those of the standing cluster with its run."""
    return read(RENDERED / f"{name}.yaml") + (read(STANDING_RUN) if name == "standing" else [])


def of_kind(documents: list[Document], *kinds: str) -> list[Document]:
    return [document for document in documents if document["kind"] in kinds]


def jobs(documents: list[Document]) -> list[Document]:
    return [job["spec"] for job in of_kind(documents, "RayJob")]


def clusters(documents: list[Document]) -> list[Document]:
    """Return the specification of every Ray cluster: those that stand, and those that come with a job."""
    own = [job["rayClusterSpec"] for job in jobs(documents) if "rayClusterSpec" in job]
    return own + [cluster["spec"] for cluster in of_kind(documents, "RayCluster")]


def workers(cluster: Document) -> list[Group]:
    return [Group(spec.get("groupName", ""), spec) for spec in cluster["workerGroupSpecs"]]


def groups(documents: list[Document]) -> list[Group]:
    """Return the head and the worker groups of every cluster."""
    return [
        group
        for cluster in clusters(documents)
        for group in (Group("head", cluster["headGroupSpec"]), *workers(cluster))
    ]


def pods(documents: list[Document]) -> Iterator[tuple[str, dict[str, str], Document]]:
    """Yield every pod that the documents make: a name, its labels, its specification."""
    for group in groups(documents):
        yield group.name, group.labels, group.pod
    for job in jobs(documents):
        template = job["submitterPodTemplate"]
        yield "submitter", template["metadata"]["labels"], template["spec"]
    for workload in of_kind(documents, "StatefulSet", "Deployment", "Job"):
        template = workload["spec"]["template"]
        yield workload["metadata"]["name"], template["metadata"]["labels"], template["spec"]


def selects(selector: Document, labels: dict[str, str]) -> bool:
    """Whether a label selector (``In`` alone among expressions) takes a pod with these labels."""
    exact = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return exact and all(labels.get(e["key"]) in e["values"] for e in selector.get("matchExpressions", []))


def quantity(text: str | int | float) -> float:
    """Return a Kubernetes quantity as a number: bytes, cores or a count."""
    units = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9}
    value = str(text)
    unit = next((unit for unit in units if value.endswith(unit)), "")
    return float(value.removesuffix(unit)) * units.get(unit, 1)
