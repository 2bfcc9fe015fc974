"""The compose file: what it starts is built from our Dockerfile, keeps its runs, and has memory to share."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cluster.recipe.recipe import load_recipe
from tests.deploy.manifests import DEPLOY, ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
KNOWN = {
    "image", "build", "command", "init", "shm_size", "stop_grace_period", "cap_drop", "security_opt", "volumes",
    "profiles", "environment", "gpus",
}  # fmt: skip
"""Of compose's own words, those that are used: a slip in one would be another word."""


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_says_nothing_that_compose_does_not_know(name: str) -> None:
    assert {*COMPOSE} == {"name", "services", "volumes"}
    assert {*SERVICES[name]} <= KNOWN


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_built_from_a_target_that_there_is(name: str) -> None:
    build = SERVICES[name]["build"]
    assert (DEPLOY / "compose" / build["context"]).resolve() == ROOT
    dockerfile = (ROOT / build["dockerfile"]).read_text(encoding="utf-8")
    assert f" AS {build['target']}\n" in dockerfile
    assert all(f"ARG {argument}=" in dockerfile for argument in build.get("args", {}))


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_trains_a_recipe_into_a_volume_that_is_kept(name: str) -> None:
    program, command, recipe, option, out, *rest = SERVICES[name]["command"]
    assert (program, command, option) == ("waymark", "train", "--out")
    load_recipe(ROOT / recipe, rest[1::2])
    volume, place = SERVICES[name]["volumes"][0].split(":")
    assert volume in COMPOSE["volumes"]
    assert out.startswith(f"{place}/")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_shared_memory_time_to_stop_and_no_rights(name: str) -> None:
    service = SERVICES[name]
    assert service["shm_size"] in ("2gb", "16gb")
    assert service["stop_grace_period"] == "2m"
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
