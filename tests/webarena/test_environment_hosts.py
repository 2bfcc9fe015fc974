"""Host names and addresses of episodes on WebArena's sites, and the host that makes their environments."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cluster.config import build_recipe
from cluster.errors import RecipeError
from cluster.task_sets import TaskSets
from replay.records import EpisodeFailed, FailureKind
from rollout_workers.environment_hosts import environment_kind
from rollout_workers.rollout_settings import RolloutSettings
from rollout_workers.spec import WorkerConfig
from webarena.addresses import SiteAddresses
from webarena.deployments import deployments_of
from webarena.environment_host import webarena_host
from webarena.hosts import Deployment, WebArenaHosts, episode_hosts, resolver_rules
from webarena.settings import DeploymentSettings, ResetSettings, WebArenaSettings

ONE_HOST = {
    "shopping": "http://wa.test:7770",
    "shopping_admin": "http://wa.test:7780/admin",
    "reddit": "http://wa.test:9999",
    "wikipedia": "http://wa.test:8888/wikipedia/A/Landing",
}


def deployment(bases: dict[str, str], name: str = "blue") -> Deployment:
    return Deployment.of(name, SiteAddresses(bases))


@pytest.mark.parametrize(
    ("real", "canonical"),
    [
        ("http://wa.test:7780/admin", "__SHOPPING_ADMIN__/"),
        ("http://wa.test:7780/admin/sales/order?x=1", "__SHOPPING_ADMIN__/sales/order?x=1"),
        ("http://wa.test:7780/administrator", "__SHOPPING_ADMIN_ROOT__/administrator"),
        ("http://wa.test:8888/wikipedia/A/Boston", "__WIKIPEDIA_ROOT__/wikipedia/A/Boston"),
        ("http://wa.test:7770/cart#top", "__SHOPPING__/cart#top"),
        ("http://wa.test:77/", "http://wa.test:77/"),
        ("http://example.com/", "http://example.com/"),
    ],
)
def test_addresses_are_canonical_also_where_a_site_lies_under_a_path(real: str, canonical: str) -> None:
    hosts = WebArenaHosts(ONE_HOST)
    assert hosts.canonical(real) == canonical
    assert hosts.real(canonical).rstrip("/") == real.rstrip("/")
    assert hosts.allows(real) == (not canonical.startswith("http"))


def test_addresses_inside_a_text_are_replaced_and_others_that_begin_alike_are_not() -> None:
    hosts = WebArenaHosts({"shopping": "http://wa.test", "reddit": "http://wa.test:9999"})
    text = (
        "See http://wa.test:9999/f/a, http://wa.test. Not http://wa.test.evil, http://wa.test:99990 or http://wa.tests"
    )
    assert hosts.canonical_text(text) == (
        "See __REDDIT__/f/a, __SHOPPING__. Not http://wa.test.evil, http://wa.test:99990 or http://wa.tests"
    )


def test_only_the_episodes_origins_pass_the_proxy() -> None:
    hosts = WebArenaHosts(
        {"shopping_admin": "http://wa.test:7780/admin", "map": "https://map.test"}, ["http://tiles.test:8080/tile"]
    )
    assert hosts.bypass == "<-loopback>,http://wa.test:7780,https://map.test:443,http://tiles.test:8080"
    assert not hosts.allows("http://tiles.test:8080/tile"), "what pages load from is not for the agent to visit"
    assert hosts.site_of("http://wa.test:7780/other") == "shopping_admin"
    assert hosts.site_of("http://tiles.test:8080/tile") is None


def test_a_clash_on_one_host_name_is_avoided_by_an_alias_that_the_browser_resolves() -> None:
    blue = deployment(ONE_HOST)
    assert blue.addresses.bases["reddit"] == "http://reddit.blue.webarena.test:9999"
    assert {**blue.addresses.bases, "reddit": ONE_HOST["reddit"]} == ONE_HOST
    assert blue.real_addresses.bases == ONE_HOST
    assert resolver_rules([blue]) == "MAP reddit.blue.webarena.test wa.test, MAP * ~NOTFOUND, EXCLUDE wa.test"
    apart = deployment({"shopping": "http://shop.test:80", "reddit": "http://Forum.test"})
    assert apart.addresses.bases == {"shopping": "http://shop.test", "reddit": "http://forum.test"}
    assert apart.aliases == {}


def test_sites_that_would_overwrite_each_others_session_are_not_played_together() -> None:
    blue = deployment({"shopping": "https://wa.test:1", "reddit": "https://wa.test:2"})
    assert blue.aliases == {}
    with pytest.raises(EpisodeFailed) as caught:
        episode_hosts({"shopping": blue, "reddit": blue})
    assert (caught.value.failure.kind, caught.value.failure.code) == (FailureKind.TASK, "hosts_clash")
    assert episode_hosts({"reddit": blue}).bases == {"reddit": "https://wa.test:2"}


def test_a_deployments_name_must_fit_into_a_host_name() -> None:
    with pytest.raises(ValueError, match="found 'Blue!'"):
        deployment(ONE_HOST, "Blue!")


def test_the_first_deployment_takes_addresses_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOPPING", "http://wa.test:7770")
    monkeypatch.setenv("MAP", "http://wa.test:3000")
    settings = WebArenaSettings(
        deployments=(
            DeploymentSettings("blue", {"map": "http://map.test"}),
            DeploymentSettings("green", {"map": "http://two.test"}),
        )
    )
    found = deployments_of(settings)
    assert found["blue"].addresses.bases == {"map": "http://map.test", "shopping": "http://wa.test:7770"}
    assert found["green"].addresses.bases == {"map": "http://two.test"}
    with pytest.raises(ValueError, match="expected the address of at least one site"):
        deployments_of(
            WebArenaSettings(deployments=(DeploymentSettings("blue", ONE_HOST), DeploymentSettings("green")))
        )


RESETTING = ResetSettings(kind="http", url="http://wa.test:7565")
SETTINGS = WebArenaSettings(deployments=(DeploymentSettings("blue", ONE_HOST, reset=RESETTING),))
PATIENT = RolloutSettings(reset_deadline_s=1050.0, episode_deadline_s=1700.0, stall_timeout_s=1700.0)


def config(settings: WebArenaSettings = SETTINGS, rollout: RolloutSettings = PATIENT) -> WorkerConfig:
    return WorkerConfig("", "", environment="webarena", settings=rollout, options={"webarena": settings})


def test_settings_that_would_fail_every_episode_are_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match="rollout.reset_deadline_s: expected at least 1050 s because of webarena's"):
        webarena_host(config(rollout=RolloutSettings()))
    hasty = replace(PATIENT, workers=2, episode_deadline_s=2000.0)
    with pytest.raises(ValueError, match="rollout.workers: expected 1 where sites are reset") as caught:
        webarena_host(config(rollout=hasty))
    for name, found in (("rollout.stall_timeout_s", 1700), ("webarena.lease_hold_s", 1800)):
        assert f"{name}: expected at least 2000 s because of rollout.episode_deadline_s, found {found} s" in str(
            caught.value
        )
    kubernetes = replace(SETTINGS.deployments[0], reset=ResetSettings(kind="kubernetes"))
    with pytest.raises(ValueError, match="comes with the Kubernetes deployment"):
        webarena_host(config(WebArenaSettings(deployments=(kubernetes,))))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"deployments": ()}, "expected at least one"),
        ({"deployments": (DeploymentSettings(), DeploymentSettings())}, "different names"),
        ({"lease_hold_s": 0.0}, "lease_hold_s: expected a time above 0 s"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WebArenaSettings(**changes)  # type: ignore[arg-type]


@pytest.mark.browser
async def test_the_host_makes_environments_until_its_browser_is_gone() -> None:
    host = webarena_host(config())
    assert host.alive()
    await host.start()
    environment = await host.environment()
    assert await environment.screenshot() is None
    assert host.alive()
    await host.close()
    assert not host.alive()
    await host.close()


def task_file(path: Path, *numbers: int) -> str:
    entries = [
        {
            "task_id": number, "sites": ["shopping"], "require_login": True, "storage_state": None, "geolocation": None,
            "start_url": "__SHOPPING__", "intent_template": "Find {{it}}", "instantiation_dict": {"it": number},
            "intent": f"Find {number}", "require_reset": False, "intent_template_id": number % 2,
            "eval": {"eval_types": ["string_match"], "reference_answers": {"exact_match": "x"}},
        }
        for number in numbers
    ]  # fmt: skip
    path.write_text(json.dumps(entries))
    return str(path)


def test_a_recipe_names_the_environment_its_sites_and_its_tasks(tmp_path: Path) -> None:
    files = {"train": task_file(tmp_path / "train.json", 1, 2, 3), "test": task_file(tmp_path / "test.json", 4, 5)}
    recipe = build_recipe(
        {
            "run": {"environment": "webarena"},
            "webarena": {"task_files": files, "deployments": [{"name": "blue", "addresses": ONE_HOST}]},
        }
    )
    source = TaskSets(recipe)._source
    assert {task.task_id for task in source.task_set(0, "train", 3)} == {"webarena.1", "webarena.2", "webarena.3"}
    assert [task.split for task in source.task_set(0, "test", 2)] == ["test", "test"]
    one = source.task("webarena.1", {"it": 1})
    assert source.similar(one, random.Random(0)) == source.task("webarena.1", {"it": 3})
    with pytest.raises(KeyError):
        source.task("webarena.1", {"it": 9})
    with pytest.raises(ValueError, match="webarena.task_files: expected a task file for each split"):
        environment_kind("webarena").tasks({}).task_set(0, "train", 1)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "section",
    [{"deploymnts": []}, {"deployments": [{"nme": "x"}]}, {"deployments": [{"reset": {"password": "x"}}]}],
)
def test_keys_that_do_not_exist_are_refused(section: dict[str, object]) -> None:
    with pytest.raises(RecipeError, match="unknown key 'webarena"):
        build_recipe({"webarena": section})


async def test_the_recipe_in_the_documentation_fits_together(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "environments.md").read_text(encoding="utf-8")
    section = page.split("\n## WebArena\n", 1)[1]
    recipe = build_recipe(yaml.safe_load(section.split("```yaml\n", 1)[1].split("```", 1)[0]))
    monkeypatch.setenv("SHOPPING", "http://wa.test:7770")
    options = {"webarena": recipe.webarena}
    host = webarena_host(WorkerConfig("", "", settings=recipe.rollout, browser=recipe.browser, options=options))
    assert (await host.environment()).__class__.__name__ == "WebArenaEnvironment"
    await host.close()
