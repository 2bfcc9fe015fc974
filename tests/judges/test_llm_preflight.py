"""Before a run: whether keys, SDKs and endpoints of language models are there, said without showing a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cluster import cli
from cluster.errors import RecipeError
from cluster.preflight import doctor, packages
from cluster.preflight.doctor import check_language_models
from cluster.recipe.recipe import Recipe, build_recipe, config_hash
from judges.llm.preflight import answers, look
from judges.llm.settings import LlmSettings, ModelSettings
from records.checks import Check, Status
from tests.judges.llm_server import ModelServer, model_server
from tests.judges.llm_server import Status as Refusal

KEY = "key-that-nobody-may-see-33d0"
FIVE = json.dumps({"sum": 5})


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(lambda asked: FIVE) as running:
        yield running


def settings(server: ModelServer, **changes: object) -> LlmSettings:
    model = ModelSettings("served", base_url=f"{server.url}/v1", key_variable="WAYMARK_TEST_KEY")
    return LlmSettings({"m": replace(model, **changes)})  # type: ignore[arg-type]


def test_a_look_opens_no_connection_and_says_where_the_key_is(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (missing,) = look(settings(server))
    assert missing.status is Status.FAIL
    assert "WAYMARK_TEST_KEY is not set" in missing.found
    monkeypatch.setenv("WAYMARK_TEST_KEY", KEY)
    (there,) = look(settings(server))
    assert (there.status, server.asked) == (Status.OK, [])
    assert "its key from WAYMARK_TEST_KEY" in there.found
    (unpriced,) = look(settings(server, base_url=""))
    assert (unpriced.status, "without prices" in unpriced.found) == (Status.WARN, True)
    assert KEY not in str([there, unpriced])


def test_an_sdk_that_is_not_installed_is_told_with_what_installs_it(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judges.llm.preflight._installed", lambda module: False)
    checks = look(replace(settings(server), cache="redis://127.0.0.1:6379/1"))
    assert {check.status for check in checks} == {Status.FAIL}
    assert {check.advice for check in checks} == {"from the checkout: pip install -e '.[judges]'"}


def test_each_endpoint_is_asked_one_question(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers(settings(server)) == [], "a model without its key is not asked"
    monkeypatch.setenv("WAYMARK_TEST_KEY", KEY)
    (check,) = answers(settings(server))
    assert (check.status, check.found) == (Status.OK, "2 + 3 is 5, in 1100 tokens")
    server.script = [Refusal(401, body=json.dumps({"error": {"message": f"bad key {KEY}"}}))]
    (check,) = answers(settings(server))
    assert check.status is Status.FAIL
    assert "HTTP 401" in check.found
    assert KEY not in check.found + check.advice


def test_check_names_models_only_where_a_recipe_does(server: ModelServer) -> None:
    assert check_language_models(Recipe()) == []
    model = {"model": "served", "base_url": f"{server.url}/v1"}
    (check,) = check_language_models(build_recipe({"judges": {"llm": {"models": {"m": model}}}}))
    assert (check.name, check.status) == ("language model m", Status.OK)


def test_doctor_asks_the_models_of_a_recipe(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "machine_checks", lambda *arguments, **named: [])
    monkeypatch.setattr(packages, "check_import", lambda module: Check(module, Status.OK, "works"))
    recipe = tmp_path / "recipe.yaml"
    model = {"model": "served", "base_url": f"{server.url}/v1"}
    recipe.write_text(yaml.safe_dump({"judges": {"llm": {"models": {"m": model}}}}))
    done = CliRunner().invoke(cli.app, ["doctor", str(recipe)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "2 + 3 is 5" in done.output
    assert len(server.asked) == 1


def test_run_goes_on_with_another_budget_price_and_limit_but_not_with_another_model() -> None:
    def hashed(budget: float, **model: object) -> str:
        models = {"m": {"model": "served", **model}}
        return config_hash(build_recipe({"judges": {"llm": {"models": models, "budget_usd": budget}}}))

    assert hashed(1.0) == hashed(2.0, usd_per_million_input=3.0, requests_per_minute=5, key_variable="K")
    assert hashed(1.0) != hashed(1.0, model="another")


@pytest.mark.parametrize(
    ("llm", "said"),
    [
        ({"models": {"m": {"modl": "x"}}}, "judges.llm.models.m.model"),
        ({"models": {"m": {"model": "x", "key": "secret"}}}, "unknown key 'judges.llm.models.m.key'"),
        ({"model": "m"}, "judges.llm.model must be one of judges.llm.models"),
    ],
)
def test_recipe_that_names_models_wrongly_is_refused_by_name(llm: dict[str, object], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        build_recipe({"judges": {"llm": llm}})
