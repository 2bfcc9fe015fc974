"""Host names and addresses of episodes on WebArena's sites, and the host that makes their environments."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.errors import RecipeError
from cluster.preflight.doctor import check_environment_of
from cluster.recipe.recipe import build_recipe
from cluster.task_sets import TaskSets
from environments.browser.environment import BrowserEnvironment
from environments.browser.host import ChromiumHost
from environments.browser.settings import BrowserSettings
from environments.kinds import Wanted, make_host
from environments.webarena.kind import WEBARENA
from environments.webarena.leases.modes import changes_sites
from environments.webarena.login.accounts import Accounts
from environments.webarena.preflight import look
from environments.webarena.settings import DeploymentSettings, ResetSettings, WebArenaSettings
from environments.webarena.sites.addresses import SITES, AddressError, SiteAddresses
from environments.webarena.sites.deployments import deployments_of, with_addresses
from environments.webarena.sites.episode_addresses import (
    Deployment,
    WebArenaAddresses,
    episode_addresses,
    resolver_rules,
)
from environments.webarena.sites.shared import make_sites
from environments.webarena.world import WebArenaWorld
from judges.interface import AnswerQuestion
from judges.kinds import JUDGES, JudgeKind, Judges
from judges.settings import EvaluatorSettings
from judges.verdicts import Evaluators, needs_answer_judge
from plugs.options import NoOptions
from records.checks import Status
from records.failures import EpisodeFailed, FailureKind
from tests.environments.webarena.fake_sites import fake_task
from tests.environments.webarena.guide import recipe_of_the_guide

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
    addresses = WebArenaAddresses(ONE_HOST)
    assert addresses.canonical(real) == canonical
    assert addresses.real(canonical).rstrip("/") == real.rstrip("/")
    assert addresses.allows(real) == (not canonical.startswith("http"))


def test_addresses_inside_a_text_are_replaced_and_others_that_begin_alike_are_not() -> None:
    addresses = WebArenaAddresses({"shopping": "http://wa.test", "reddit": "http://wa.test:9999"})
    text = (
        "See http://wa.test:9999/f/a, http://wa.test. Not http://wa.test.evil, http://wa.test:99990 or http://wa.tests"
    )
    assert addresses.canonical_text(text) == (
        "See __REDDIT__/f/a, __SHOPPING__. Not http://wa.test.evil, http://wa.test:99990 or http://wa.tests"
    )


def test_only_the_episodes_origins_pass_the_proxy() -> None:
    addresses = WebArenaAddresses(
        {"shopping_admin": "http://wa.test:7780/admin", "map": "https://map.test"}, ["http://tiles.test:8080/tile"]
    )
    rules = addresses.bypass.split(",")
    assert rules[0] == "<-loopback>"
    assert [rule for rule in rules if rule.startswith("http")] == [
        "http://wa.test:7780",
        "https://map.test:443",
        "http://tiles.test:8080",
    ]
    own = {"wa.test:7780", "map.test:443", "tiles.test:8080"}
    assert {rule for rule in rules[1:] if rule.startswith("ws")} == {f"{s}://{at}" for s in ("ws", "wss") for at in own}
    assert len(rules) == 10
    assert not addresses.allows("http://tiles.test:8080/tile"), "what pages load from is not for the agent to visit"
    assert addresses.site_of("http://wa.test:7780/other") == "shopping_admin"
    assert addresses.site_of("http://tiles.test:8080/tile") is None


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
        episode_addresses({"shopping": blue, "reddit": blue})
    assert (caught.value.failure.kind, caught.value.failure.code.name) == (FailureKind.TASK, "hosts_clash")
    assert episode_addresses({"reddit": blue}).bases == {"reddit": "https://wa.test:2"}


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
FIRST_LOOK = WEBARENA.read(WEBARENA.first_look, "webarena")
SETTINGS = WebArenaSettings(deployments=(DeploymentSettings("blue", ONE_HOST, reset=RESETTING),))
PATIENT = Wanted(
    tasks={},
    judged=lambda tasks: [],
    reset_s=120.0,
    episode_s=1700.0,
    stall_s=1700.0,
    elsewhere=False,
)


def host(settings: WebArenaSettings = SETTINGS, judge: Evaluators | None = None) -> ChromiumHost:
    made = make_host("webarena", settings, with_addresses(settings), BrowserSettings(), judge or Evaluators())
    assert isinstance(made, ChromiumHost)
    return made


def waits_that_do_not_fit(settings: WebArenaSettings, wanted: Wanted) -> dict[str, str]:
    checks = [check for check in look(settings, wanted) if check.advice == "raise it, or lower the other"]
    return {check.name: check.found for check in checks}


def test_waits_that_would_fail_episodes_that_only_wait_for_their_sites_are_told() -> None:
    hasty = replace(PATIENT, reset_s=30.0, episode_s=300.0, stall_s=600.0)
    found = waits_that_do_not_fit(SETTINGS, hasty)
    assert found["rollout.reset_deadline_s"].startswith(
        "expected at least 120 s because of environments.webarena.login_timeout_s"
    )
    assert waits_that_do_not_fit(SETTINGS, replace(PATIENT, episode_s=2000.0)) == {
        "rollout.stall_timeout_s": "expected at least 2000 s because of rollout.episode_deadline_s, found 1700 s",
        "environments.webarena.lease_hold_s": "expected at least 2000 s because of rollout.episode_deadline_s, "
        "found 1800 s",
    }
    assert waits_that_do_not_fit(SETTINGS, PATIENT) == {}
    resetting = replace(RESETTING, timeout_s=2000.0)
    slow = replace(SETTINGS, deployments=(replace(SETTINGS.deployments[0], reset=resetting),))
    assert waits_that_do_not_fit(slow, PATIENT) == {
        "rollout.stall_timeout_s": "expected at least 2000 s because of "
        "environments.webarena.deployments[].reset.timeout_s, found 1700 s"
    }


def test_the_waits_of_a_log_in_are_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, float]] = []
    monkeypatch.setattr("environments.webarena.sites.shared.FormLogin", lambda browser, **waits: given.append(waits))
    settings = replace(SETTINGS, login_timeout_s=90.0, login_load_timeout_s=11.0)
    make_sites(settings, {}, None, Accounts({}), judge=Evaluators())  # type: ignore[arg-type]
    assert given == [{"timeout_s": 90.0, "load_timeout_s": 11.0}]


async def test_a_host_hands_its_episodes_the_judge_of_the_run() -> None:
    judge = Judges({"evaluators": {"answer_timeout_s": 3}}).of_trajectories("evaluators")
    assert isinstance(judge, Evaluators)
    assert judge.settings == EvaluatorSettings(answer_timeout_s=3.0)
    made = host(judge=judge)
    assert (await made.environment()).world._sites.judge is judge
    await made.close()
    with pytest.raises(ValueError, match="unknown key 'judges.evaluators.answer_timeou_s'; did you mean"):
        Judges({"evaluators": {"answer_timeou_s": 3}}).of_trajectories("evaluators")


def test_plain_options_become_settings_and_what_is_wrong_with_them_is_told() -> None:
    plain = {"deployments": [{"name": "blue", "addresses": ONE_HOST}], "task_files": {"train": "start-pages"}}
    tasks = WEBARENA.tasks(WEBARENA.read(plain, "webarena")).task_set(0, "train", 9, at_least=1)
    assert {task.start_url for task in tasks} == {f"__{site.upper()}__/" for site in ONE_HOST}
    with pytest.raises(ValueError, match="unknown key 'webarena.deploymnts'; did you mean 'webarena.deployments'"):
        WEBARENA.read({"deploymnts": []}, "webarena")


def test_start_pages_log_in_where_there_is_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SHOPPING": "http://wa.test", "MAP": "http://wa.test:3", "SHOPPING_USERNAME": "u"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SHOPPING_PASSWORD", "p")
    tasks = WEBARENA.tasks(FIRST_LOOK).task_set(0, "train", 2)
    assert {task.sites[0]: task.require_login for task in tasks} == {"shopping": True, "map": False}
    assert not any(needs_answer_judge(task) or changes_sites(task) for task in tasks)


class Judge:
    """An LLM judge."""

    name = "echo"

    async def matches(self, question: AnswerQuestion) -> bool:
        return question.answer == question.reference

    async def same_reason(self, question: AnswerQuestion) -> bool:
        return True


ECHO = JudgeKind(settings=NoOptions, make=lambda settings, judges: Judge())
NO_JUDGE = JudgeKind(settings=NoOptions, make=lambda settings, judges: BrowserSettings())  # type: ignore[arg-type,return-value]


def test_a_judge_is_named_by_the_recipe_and_what_is_none_is_refused() -> None:
    here = __name__
    for name, found in ((f"{here}:ECHO", "echo"), ("", None)):
        judge = Judges({"evaluators": {"answer_judge": name}}).of_trajectories("evaluators")
        assert isinstance(judge, Evaluators)
        assert getattr(judge.answers, "name", None) == found
    for name, complaint in {
        f"{here}:PATIENT": "expected a judge .JudgeKind., found a Wanted",
        f"{here}:SiteAddresses.from_environment": "has no",
        f"{here}:NO_JUDGE": "expected an AnswerJudge, found a BrowserSettings",
        "declarative": "expected an AnswerJudge, found a DeclarativeChecks",
        "no_such_module:judge": "cannot import 'no_such_module'",
        "judge": f"expected a judge out of {', '.join(sorted(JUDGES.own))}, or 'module:name', found 'judge'",
    }.items():
        with pytest.raises(ValueError, match=complaint):
            Judges({"evaluators": {"answer_judge": name}}).of_trajectories("evaluators")


FUZZY = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["tea"]}}
NOT_POSSIBLE = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": "N/A"}, "string_note": "no tea"}
ON_A_PAGE = {
    "eval_types": ["program_html"],
    "program_html": [{"url": "last", "locator": "", "required_contents": {"fuzzy_match": "tea"}}],
}
EXACT = {"eval_types": ["string_match"], "reference_answers": {"exact_match": "tea"}}
UNUSED = {"eval_types": ["url_match"], "reference_url": "__MAP__", "reference_answers": {"fuzzy_match": ["tea"]}}


@pytest.mark.parametrize(
    ("evaluation", "needed"), [(FUZZY, True), (NOT_POSSIBLE, True), (ON_A_PAGE, True), (EXACT, False), (UNUSED, False)]
)
def test_which_tasks_need_a_judge(evaluation: dict[str, object], needed: bool) -> None:
    assert needs_answer_judge(fake_task(evaluation=evaluation)) is needed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"deployments": ()}, "expected at least one"),
        ({"deployments": (DeploymentSettings(), DeploymentSettings())}, "different names"),
        ({"lease_hold_s": 0.0}, "lease_hold_s must be a time above 0 s"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WebArenaSettings(**changes)  # type: ignore[arg-type]


@pytest.mark.browser
async def test_the_host_makes_environments_until_its_browser_is_gone() -> None:
    made = host()
    assert made.alive()
    await made.start()
    environment = await made.environment()
    assert await environment.screenshot() is None
    assert made.alive()
    await made.close()
    assert not made.alive()
    await made.close()


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
            "environments": {
                "webarena": {"task_files": files, "deployments": [{"name": "blue", "addresses": ONE_HOST}]}
            },
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
        WEBARENA.tasks(WebArenaSettings()).task_set(0, "train", 1)


def test_without_any_address_the_variables_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for site in SITES:
        monkeypatch.delenv(site.upper(), raising=False)
        monkeypatch.delenv(f"WA_{site.upper()}", raising=False)
    for ask in (lambda: WEBARENA.tasks(FIRST_LOOK).task_set(0, "train", 1), lambda: host(WebArenaSettings())):
        with pytest.raises(AddressError, match="SHOPPING, SHOPPING_ADMIN, REDDIT, GITLAB, MAP, WIKIPEDIA, HOMEPAGE"):
            ask()


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("http://root:hunter2@wa.test:1", "SHOPPING: expected an address without a password"),
        ("http://wa.test:99999", "SHOPPING: expected an address such as http://host:port"),
        ("http://:80", "SHOPPING: expected an address such as http://host:port"),
    ],
)
def test_an_address_that_would_be_a_secret_or_is_none_is_refused(address: str, complaint: str) -> None:
    with pytest.raises(AddressError, match=complaint) as caught:
        SiteAddresses({"shopping": address})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ValueError, match="reset.url: expected an address without a password") as refused:
        ResetSettings(kind="http", url="http://root:hunter2@wa.test:1")
    assert "hunter2" not in str(refused.value)


def test_the_runs_addresses_are_those_of_the_driver() -> None:
    settings = WebArenaSettings(deployments=(DeploymentSettings("blue"), DeploymentSettings("green", ONE_HOST)))
    filled = with_addresses(settings, {"MAP": "http://map.test/"})
    assert filled.deployments[0].addresses == {"map": "http://map.test"}
    assert filled.deployments[1] == settings.deployments[1]
    assert with_addresses(filled, {"MAP": "http://elsewhere.test"}) == filled


@pytest.mark.parametrize(
    "section",
    [{"deploymnts": []}, {"deployments": [{"nme": "x"}]}, {"deployments": [{"reset": {"password": "x"}}]}],
)
def test_keys_that_do_not_exist_are_refused(section: dict[str, object]) -> None:
    with pytest.raises(RecipeError, match="unknown key 'environments.webarena"):
        build_recipe({"environments": {"webarena": section}})


async def test_the_recipe_and_the_judge_in_the_documentation_fit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = recipe_of_the_guide()
    assert raw["judges"]["evaluators"]["answer_judge"] == "llm"
    recipe = build_recipe(raw, ["judges.evaluators.answer_judge=examples.same_answer:SAME"])
    monkeypatch.setenv("SHOPPING", "http://wa.test:7770")
    assert {check.name for check in check_environment_of(recipe) if check.status is Status.FAIL} == {
        "tasks of train", "tasks of test"
    }, "the task files are not here, and the waits fit"  # fmt: skip
    judge = recipe.judges_of_run.of_trajectories(recipe.rollout.trajectory_judge)
    assert isinstance(judge, Evaluators)
    assert judge.settings == EvaluatorSettings("examples.same_answer:SAME", answer_timeout_s=20.0)
    settings = recipe.environment_settings("webarena")
    assert isinstance(settings, WebArenaSettings)
    made = host(settings, judge)
    environment = await made.environment()
    assert isinstance(environment, BrowserEnvironment)
    assert isinstance(environment.world, WebArenaWorld)
    assert judge.answers is not None
    question = AnswerQuestion("Find it", "Tea", "tea")
    assert await judge.answers.matches(question)
    strict = Judges({"examples.same_answer:SAME": {"fold_case": False}}).of_answers("examples.same_answer:SAME")
    assert not await strict.matches(question)
    await made.close()
