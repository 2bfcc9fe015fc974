"""What lies in the repository as rendered is what kustomize makes of its sources, and passes their schemas."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from functools import cache
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml

from tests.deploy.manifests import (
    DEPLOY,
    RENDERED,
    ROOT,
    Document,
    clusters,
    example,
    example_names,
    of_kind,
    workers,
)

KUBERAY = ROOT.parent / "shared" / "kuberay"
KUBERNETES_VERSION = "1.34"
OWN_KINDS = {"RayCluster", "RayJob"}
"""Those of the operator, checked by its own schemas; those of ``PROMETHEUS`` are of Prometheus' operator."""
PROMETHEUS = {"PodMonitor", "PrometheusRule"}


def renderer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("deploy_render", DEPLOY / "render.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def has_kustomize() -> bool:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        return False
    said = subprocess.run([kubectl, "version", "--client"], capture_output=True, text=True, timeout=60, check=False)
    return "Kustomize Version: v5" in said.stdout


def test_every_example_is_rendered_from_its_sources_as_they_are_now() -> None:
    made = renderer()
    assert example_names() == made.examples()
    for name in example_names():
        first = (RENDERED / f"{name}.yaml").read_text(encoding="utf-8").partition("\n")[0]
        assert first.endswith(f"sources {made.sources_digest()}"), "run `python deploy/render.py`"


@pytest.mark.skipif(not has_kustomize(), reason="no kubectl with kustomize 5 here")
@pytest.mark.parametrize("name", example_names())
def test_rendered_is_what_kustomize_makes(name: str) -> None:
    assert (RENDERED / f"{name}.yaml").read_text(encoding="utf-8") == renderer().render(name)


@pytest.mark.skipif(not KUBERAY.is_dir(), reason="no ../shared/kuberay with the operator's schemas here")
@pytest.mark.parametrize("name", example_names())
def test_rays_kinds_pass_the_operators_schemas_and_have_no_field_that_these_lack(name: str) -> None:
    found = of_kind(example(name), *OWN_KINDS)
    assert found
    for document in found:
        validator = jsonschema.Draft202012Validator(strict_schema(document["kind"]))
        assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)] == []


@cache
def strict_schema(kind: str) -> dict[str, Any]:
    """Return the schema of one of the operator's kinds that knows no further fields.

    Kubernetes drops a field that a schema does not name without a word, so a slip in a name would never be seen.
    """
    path = next(KUBERAY.glob(f"ray.io_{kind.lower()}s.*.yaml"))
    definition = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    schema: dict[str, Any] = next(
        version["schema"]["openAPIV3Schema"] for version in definition["spec"]["versions"] if version["name"] == "v1"
    )
    close(schema)
    schema["properties"]["metadata"] = {"type": "object"}
    return schema


def close(schema: Any) -> None:
    if isinstance(schema, list):
        for part in schema:
            close(part)
    if isinstance(schema, dict):
        if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            close(part)


def plain_documents() -> list[tuple[str, Document]]:
    return [
        (f"{name}-{document['kind']}-{document['metadata']['name']}", document)
        for name in example_names()
        for document in example(name)
        if document["kind"] not in OWN_KINDS | PROMETHEUS
    ]


def complaint(document: Document) -> str | None:
    """Return what Kubernetes' schema says against a document."""
    import kubernetes_validate

    try:
        kubernetes_validate.validate(document, KUBERNETES_VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        return str(error)
    return None


def test_plain_kinds_pass_kubernetes_schemas() -> None:
    documents = plain_documents()
    assert len(documents) > len(example_names())
    assert {name: said for name, document in documents if (said := complaint(document))} == {}


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    for name, document in plain_documents():
        assert complaint({**document, "specification": {}}), name


@pytest.mark.parametrize("name", example_names())
def test_rays_autoscaler_reads_what_each_group_offers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the function with which the autoscaler beside the head reads the cluster from Kubernetes."""
    monkeypatch.setenv("RAY_CLIENT_MODE", "0")  # as the module's import does
    from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr

    for cluster in clusters(example(name)):
        named = {"metadata": {"name": "waymark", "namespace": "waymark"}, "spec": cluster}
        read = _derive_autoscaling_config_from_ray_cr(named)["available_node_types"]
        assert read["headgroup"]["resources"]["CPU"] == 0
        for group in workers(cluster):
            limits, found = group.ray["resources"]["limits"], read[group.name]
            assert found["resources"]["CPU"] == int(limits["cpu"])
            assert found["resources"].get("GPU", 0) == int(limits.get("nvidia.com/gpu", 0))
            assert found["resources"][group.name] >= 100
            assert (found["min_workers"], found["max_workers"]) == (
                group.spec["minReplicas"],
                group.spec["maxReplicas"],
            )
