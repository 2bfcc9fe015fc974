"""What `waymark check` and `waymark env check` say about WebArena's sites before a run meets them."""

from __future__ import annotations

import json
import logging
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cluster import cli
from cluster.errors import RecipeError
from cluster.preflight.doctor import check_environment_of
from cluster.preflight.environment import check_environment_kind
from cluster.recipe.recipe import Recipe, build_recipe, resolved
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.addresses import SITES
from environments.webarena.sites.deployments import with_addresses
from judges.interface import AnswerQuestion
from judges.kinds import JudgeKind
from plugs.options import NoOptions
from records.checks import Status
from tests.environments.lab_site import serving
from tests.environments.webarena.fake_sites import FakeSite

PASSWORD = "hunter2 & more"
DISTILLED = {"model": "flash", "source": "successes"}
WAITS = {"reset_deadline_s": 1100, "episode_deadline_s": 1700, "stall_timeout_s": 1700}


class Judge:
    """A judge that a recipe may name."""

    name = "echo"

    async def matches(self, question: AnswerQuestion) -> bool:
        return question.answer == question.reference

    async def same_reason(self, question: AnswerQuestion) -> bool:
        return question.answer == question.reference


ECHO = JudgeKind(settings=NoOptions, make=lambda settings, judges: Judge())


@pytest.fixture(autouse=True)
def _no_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    for site in SITES:
        for name in (site.upper(), f"WA_{site.upper()}", f"{site.upper()}_USERNAME", f"{site.upper()}_PASSWORD"):
            monkeypatch.delenv(name, raising=False)


def entry(number: int, **changes: Any) -> dict[str, Any]:
    evaluation = {"eval_types": ["string_match"], "reference_answers": changes.pop("answers", {"exact_match": "x"})}
    return {
        "task_id": number, "sites": ["shopping"], "require_login": True, "storage_state": None, "geolocation": None,
        "start_url": "__SHOPPING__", "intent_template": "Find {{it}}", "instantiation_dict": {"it": number},
        "intent": f"Find {number}", "require_reset": False, "intent_template_id": number, "eval": evaluation, **changes,
    }  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    train = [entry(1), entry(2, answers={"fuzzy_match": "N/A"}), entry(3, answers={"fuzzy_match": ["y"]})]
    sets = {"train": train, "test": [entry(4), entry(5, intent="Delete it", sites=["reddit"])]}
    for name, entries in sets.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(entries))
    return {name: str(tmp_path / f"{name}.json") for name in sets}


def recipe(files: dict[str, str], judge: str = "", **webarena: Any) -> Recipe:
    return build_recipe(sections(files, judge, **webarena))


def sections(files: dict[str, str], judge: str = "", **webarena: Any) -> dict[str, Any]:
    evaluation = {"splits": ["test"], "tasks_per_split": 2}
    return {
        "run": {"environment": "webarena", "training_tasks": 3, "evaluation": evaluation},
        "rollout": WAITS,
        "learner": {"algorithm": "webrl"},
        "environments": {"webarena": {"task_files": files, **webarena}},
        "judges": {"evaluators": {"answer_judge": judge}},
    }


def on_a_cluster(files: dict[str, str], changes: dict[str, Any]) -> Recipe:
    made = sections(files)
    made["judges"]["llm"] = {"models": {"flash": {"client": "gemini", "model": "gemini-2.5-flash"}}}
    return build_recipe({**made, **changes}, ["run.resources.address=auto"])


def found(recipe: Recipe, status: Status) -> dict[str, str]:
    return {
        check.name: f"{check.found} -> {check.advice}"
        for check in check_environment_of(recipe)
        if check.status is status
    }


def test_a_recipe_with_another_environment_is_not_asked() -> None:
    assert [check.name for check in check_environment_of(Recipe())] == ["sites", "tasks"]


def test_what_is_missing_is_named_with_the_variables_to_set(files: dict[str, str]) -> None:
    missing = found(recipe(files), Status.FAIL)
    assert set(missing) == {"site addresses", "site accounts"}
    assert "SHOPPING, SHOPPING_ADMIN, REDDIT, GITLAB, MAP, WIKIPEDIA, HOMEPAGE" in missing["site addresses"]
    assert "SHOPPING_USERNAME and SHOPPING_PASSWORD" in missing["site accounts"]


@pytest.mark.parametrize(
    ("overrides", "status"),
    [
        ({}, Status.WARN),
        ({"milestones": {"model": "flash"}}, Status.FAIL),
        ({"milestones": DISTILLED, "replay": {"milestones": "milestone_matching"}}, Status.WARN),
        ({"curriculum": {"value_band": True}}, Status.FAIL),
    ],
    ids=["workers alone", "milestones", "distilled milestones", "band"],
)
def test_on_a_cluster_the_driver_needs_the_accounts_where_it_opens_first_pages(
    files: dict[str, str], overrides: dict[str, Any], status: Status
) -> None:
    made = on_a_cluster(files, overrides)
    (check,) = [check for check in check_environment_of(made) if check.name == "site accounts"]
    assert check.status == status
    assert ("here too" in check.advice) == (status is Status.FAIL)


def test_an_evaluation_needs_the_accounts_where_milestones_are_written_for_it(files: dict[str, str]) -> None:
    told = {"rollout": {**WAITS, "planning": {"mode": "milestones"}}}
    for overrides, status in (({}, Status.WARN), (told, Status.FAIL)):
        made = on_a_cluster(files, {"milestones": {"model": "flash"}, **overrides})
        checks = check_environment_of(made, learns=False)
        assert [check.status for check in checks if check.name == "site accounts"] == [status]


def test_a_site_that_a_task_needs_and_no_deployment_has_is_named(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOPPING", "http://shop.test:7770")
    assert "tasks need REDDIT" in found(recipe(files), Status.FAIL)["site addresses"]


def complete(files: dict[str, str], monkeypatch: pytest.MonkeyPatch, **webarena: Any) -> Recipe:
    for site in ("SHOPPING", "REDDIT"):
        monkeypatch.setenv(site, f"http://{site.lower()}.test")
        monkeypatch.setenv(f"{site}_USERNAME", "agent")
        monkeypatch.setenv(f"{site}_PASSWORD", PASSWORD)
    return recipe(files, **webarena)


def test_a_task_that_is_said_to_write_and_that_no_file_has_is_named(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task of a file that is not played here is known all the same."""
    files = {**files, "validation": files["test"], "test": files["train"]}
    made = complete(files, monkeypatch, writes={"webarena.2": True, "webarena.5": False})
    assert "environments.webarena.writes" not in found(made, Status.FAIL)
    made = complete(files, monkeypatch, writes={"webarena.2": True, "5": False, "webarena.99": True})
    said = found(made, Status.FAIL)["environments.webarena.writes"]
    assert "no task is called 5, webarena.99" in said
    assert "ids are such as webarena.5" in said


def test_tasks_that_need_a_judge_or_a_reset_that_is_not_there_are_named(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = complete(files, monkeypatch)
    assert found(made, Status.FAIL) == {}
    warnings = found(made, Status.WARN)
    assert "none, and 2 tasks (webarena.2, webarena.3) of train need one" in warnings["LLM judge"]
    assert "judges.evaluators.answer_judge" in warnings["LLM judge"]
    assert "none, and 1 tasks (webarena.5) change a site" in warnings["site resets"]


def test_a_judge_and_a_reset_settle_that(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    reset = {"kind": "command", "command": ["./reset.sh"]}
    made = complete(files, monkeypatch, judge=f"{__name__}:ECHO", deployments=[{"name": "blue", "reset": reset}])
    assert (found(made, Status.FAIL), found(made, Status.WARN)) == ({}, {})
    said = found(made, Status.OK)
    assert "echo, for 2 tasks" in said["LLM judge"]
    assert "blue: shopping http://shopping.test, reddit http://reddit.test" in said["site addresses"]
    assert PASSWORD not in str(check_environment_of(made))


@pytest.mark.parametrize(
    ("changes", "name", "complaint"),
    [
        ({"judge": "nowhere:judge"}, "LLM judge", "cannot import 'nowhere'"),
        ({"deployments": [{"reset": {"kind": "kubernetes"}}]}, "site resets", "a pod's service account"),
        ({"login_timeout_s": 5000}, "rollout.reset_deadline_s", "expected at least 10000 s"),
        ({"credentials_file": "/no/such/file"}, "site accounts", "cannot be read"),
    ],
)
def test_what_cannot_work_is_missing(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], name: str, complaint: str
) -> None:
    assert complaint in found(complete(files, monkeypatch, **changes), Status.FAIL)[name]


def test_splits_without_a_file_with_a_bad_one_or_with_too_few_tasks_are_told(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    half = complete({"train": files["train"]}, monkeypatch)
    assert "environments.webarena.task_files.test" in found(half, Status.FAIL)["tasks of test"]
    (tmp_path / "bad.json").write_text("[3]")
    bad = complete({**files, "test": str(tmp_path / "bad.json")}, monkeypatch)
    assert "task 0: expected an object, found 3" in found(bad, Status.FAIL)["tasks of test"]
    few = complete({**files, "train": files["test"]}, monkeypatch)
    assert "run.training_tasks asks for 3; set it to 2 or less" in found(few, Status.FAIL)["tasks of train"]


def test_an_accounts_file_that_others_can_read_is_told(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "accounts.json"
    path.write_text("{}")
    for mode, told in ((0o644, True), (0o600, False)):
        os.chmod(path, mode)
        made = complete(files, monkeypatch, credentials_file=str(path))
        assert (f"chmod 600 {path}" in str(found(made, Status.WARN))) is told


def test_the_command_shows_it_and_ends_with_code_3(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOPPING_PASSWORD", PASSWORD)
    path = tmp_path / "recipe.yaml"
    path.write_text(
        json.dumps({"run": {"environment": "webarena"}, "environments": {"webarena": {"task_files": files}}})
    )
    done = CliRunner().invoke(cli.app, ["check", str(path)])
    assert done.exit_code != 0
    for text in ("site addresses", "SHOPPING, SHOPPING_ADMIN", "rollout.reset_deadline_s", "LLM judge"):
        assert text in done.output
    assert PASSWORD not in done.output


def test_no_password_gets_into_what_is_kept_of_a_run(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        made = complete(files, monkeypatch)
        settings = made.environment_settings("webarena")
        assert isinstance(settings, WebArenaSettings)
        kept = [json.dumps(resolved(made)), repr(with_addresses(settings)), repr(check_environment_of(made))]
        sent = pickle.dumps(with_addresses(settings))
    assert "http://shopping.test" in kept[1]
    assert not any(PASSWORD in text for text in (*kept, caplog.text))
    assert PASSWORD.encode() not in sent


@pytest.mark.parametrize(
    "section",
    [{"addresses": {"shopping": "http://root:hunter2@a.test"}}, {"extra_origins": ["http://root:hunter2@b.test"]}],
)
def test_a_recipe_with_a_password_in_an_address_is_refused_without_it(section: dict[str, Any]) -> None:
    with pytest.raises(RecipeError, match="expected an address without a password") as refused:
        build_recipe({"environments": {"webarena": {"deployments": [section]}}})
    assert "hunter2" not in str(refused.value)


def test_the_environment_check_without_addresses_names_the_variables() -> None:
    with pytest.raises(RecipeError, match="environment variables SHOPPING, SHOPPING_ADMIN, REDDIT"):
        CliRunner().invoke(cli.app, ["env", "check", "webarena"], catch_exceptions=False)


@pytest.fixture
def shop() -> Iterator[str]:
    with serving(FakeSite("Shop").app()) as port:
        yield f"http://127.0.0.1:{port}/page/1"


@pytest.mark.browser
def test_the_environment_check_needs_an_address_and_nothing_else(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOPPING", shop)
    found = check_environment_kind("webarena", seconds=2.0, slots=(2,))
    assert [point for point in found.points if point.broken] == []
    assert found.tasks[0].task_id == "start-pages.shopping"
    assert found.measured[0].resets_s
