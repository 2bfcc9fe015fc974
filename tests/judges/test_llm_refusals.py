"""What a model refuses of a request is left out of the next one, is remembered, and costs no judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from judges.llm.interface import LlmQuestion
from judges.llm.preflight import answers
from judges.llm.service import JudgeService
from judges.llm.settings import LlmSettings, ModelSettings
from records.checks import Status as CheckStatus
from records.deadline import Deadline
from records.failures import EpisodeFailed
from tests.judges.llm_server import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    SAME,
    Asked,
    ModelServer,
    Status,
    chat_completion,
    model_server,
)


class Verdict(BaseModel):
    why: str
    same: bool


ROOM = 8192
"""Tokens: what a model that decides by itself how long it thinks is given beside its answer."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setattr("judges.llm.endpoint._FIRST_PAUSE_S", 0.02)
    with model_server() as running:
        yield running


def settings(server: ModelServer, client: str = "openai", **changes: object) -> LlmSettings:
    path = "/v1" if client == "openai" else ""
    return LlmSettings({"m": ModelSettings("served", client, f"{server.url}{path}")}, **changes)  # type: ignore[arg-type]


def question(text: str, thinking_tokens: int | None = None) -> LlmQuestion[Verdict]:
    return LlmQuestion("test/1", "You compare.", (text,), Verdict, max_tokens=200, thinking_tokens=thinking_tokens)


async def ask(server: ModelServer, *questions: LlmQuestion[Verdict], client: str = "openai") -> list[dict[str, Any]]:
    """Ask one after the other, expect an answer to each, and return what was sent."""
    service = JudgeService(settings(server, client))
    for each in questions:
        assert (await service.ask("m", each, Deadline(20))).value.same
    await service.close()
    return [asked.body for asked in server.asked]


def openai_error(message: str, param: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}})


NO_TEMPERATURE = openai_error("Unsupported value: 'temperature' does not support 0 with this model.", "temperature")
OWN_WORDS = json.dumps({"detail": [{"type": "extra_forbidden", "loc": ["body", "max_completion_tokens"]}]})
TOO_LARGE = openai_error("max_tokens is too large: 8392. This model supports at most 4096 tokens.", "max_tokens")
NO_SPACE = openai_error(
    "This model's maximum context length is 4096 tokens. However, you requested 8392 output tokens."
)


def refusing(refuses: Callable[[dict[str, Any]], str]) -> Callable[[Asked], object]:
    """Answer as a model that refuses a body with what ``refuses`` returns, where it returns anything."""

    def say(asked: Asked) -> object:
        refusal = refuses(asked.body)
        return Status(400, body=refusal) if refusal else SAME

    return say


@pytest.mark.parametrize("client", ["openai", "gemini"])
async def test_a_model_that_decides_itself_has_room_to_think(server: ModelServer, client: str) -> None:
    (body,) = await ask(server, question("a"), client=client)
    sent = body["max_completion_tokens"] if client == "openai" else body["generationConfig"]["maxOutputTokens"]
    assert sent == 200 + ROOM


async def test_a_model_that_takes_no_temperature_is_asked_without_one_from_then_on(server: ModelServer) -> None:
    server.say = refusing(lambda body: NO_TEMPERATURE if "temperature" in body else "")
    first, second, third = await ask(server, question("a"), question("b"))
    assert first["temperature"] == 0
    assert "temperature" not in second
    assert "temperature" not in third
    assert "response_format" in third, "it was not the schema that the model refused"


async def test_an_endpoint_that_knows_the_older_name_of_the_limit_is_told_that_one(server: ModelServer) -> None:
    server.say = refusing(lambda body: OWN_WORDS if "max_completion_tokens" in body else "")
    _, second, third = await ask(server, question("a"), question("b"))
    for body in (second, third):
        assert body["max_tokens"] == 200 + ROOM
        assert "max_completion_tokens" not in body
        assert "response_format" in body


@pytest.mark.parametrize("refusal", [TOO_LARGE, NO_SPACE])
async def test_a_model_without_that_much_room_is_asked_with_the_answers_own(server: ModelServer, refusal: str) -> None:
    server.say = refusing(lambda body: refusal if body["max_completion_tokens"] > 4096 else "")
    _, second = await ask(server, question("a"))
    assert second["max_completion_tokens"] == 200
    assert (second["temperature"], "response_format" in second) == (0, True)


async def test_a_model_that_refuses_all_of_it_is_asked_step_by_step(server: ModelServer) -> None:
    def refuses(body: dict[str, Any]) -> str:
        if "response_format" in body:
            return openai_error("not understood")
        return NO_TEMPERATURE if "temperature" in body else OWN_WORDS if "max_completion_tokens" in body else ""

    server.say = refusing(refuses)
    sent = await ask(server, question("a"), question("b"))
    assert len(sent) == 5
    assert {"response_format", "temperature", "max_completion_tokens"}.isdisjoint(sent[-1])


async def test_an_endpoint_that_says_the_whole_request_back_names_nothing_of_it(server: ModelServer) -> None:
    def say(asked: Asked) -> object:
        if "response_format" not in asked.body:
            return SAME
        return Status(422, body=json.dumps({"detail": [{"msg": "not understood", "input": asked.body}]}))

    server.say = say
    sent = await ask(server, question("a"), question("b"))
    assert len(sent) == 3
    assert (sent[-1]["temperature"], "max_completion_tokens" in sent[-1]) == (0, True)


BUDGETS = [
    "Budget 0 is invalid. This model only works in thinking mode.",
    "Unable to submit request because Thinking can't be disabled for this model.",
    "The model does not support setting thinking_budget to 0",
]


def always_thinks(said: str) -> Callable[[Asked], object]:
    def say(asked: Asked) -> object:
        thinking = asked.body["generationConfig"].get("thinkingConfig", {})
        if thinking.get("thinking_budget", thinking.get("thinkingBudget")) != 0:
            return SAME
        return Status(400, body=json.dumps({"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}))

    return say


@pytest.mark.parametrize("said", BUDGETS)
async def test_a_model_that_always_thinks_is_not_told_a_second_time_not_to(server: ModelServer, said: str) -> None:
    server.say = always_thinks(said)
    sent = await ask(server, question("a", 0), question("b", 0), question("c", 300), client="gemini")
    told = [body["generationConfig"] for body in sent]
    assert len(told) == 4
    assert ["thinkingConfig" in config for config in told] == [True, False, False, True]
    assert [config["maxOutputTokens"] for config in told] == [200, 200 + ROOM, 200 + ROOM, 500]


async def test_the_account_has_to_have_room_for_thought_that_cannot_be_kept_off(server: ModelServer) -> None:
    server.say = always_thinks(BUDGETS[0])
    service = JudgeService(settings(server, "gemini", budget_tokens=ROOM))
    with pytest.raises(EpisodeFailed, match="judge/judge_budget"):
        await service.ask("m", question("a", 0), Deadline(20))
    assert len(server.asked) == 1
    await service.close()


async def test_a_budget_of_another_bad_request_is_kept(server: ModelServer) -> None:
    server.script = [Status(400, body=json.dumps({"error": {"code": 400, "message": "API key not valid."}}))]
    service = JudgeService(settings(server, "gemini"))
    with pytest.raises(EpisodeFailed, match="judge/judge_refused"):
        await service.ask("m", question("a", 0), Deadline(20))
    assert len(server.asked) == 1
    await service.close()


def starved(as_error: bool) -> Status:
    """Say what a model does that has thought until its room was used up."""
    if as_error:
        said = "Could not finish the message because max_tokens or model output limit was reached. "
        return Status(400, body=openai_error(said + "Please try again with higher max_tokens."))
    cut = chat_completion("")
    cut["choices"][0]["finish_reason"] = "length"
    return Status(200, body=json.dumps(cut))


@pytest.mark.parametrize("as_error", [False, True])
async def test_a_model_that_thinks_though_it_should_not_is_given_room_and_both_are_paid(
    server: ModelServer, as_error: bool
) -> None:
    server.say = lambda asked: SAME if asked.body["max_completion_tokens"] >= ROOM else starved(as_error)
    service = JudgeService(settings(server))
    answer = await service.ask("m", question("a", 0), Deadline(20))
    replies = 1 if as_error else 2
    assert (answer.input_tokens, answer.output_tokens) == (replies * INPUT_TOKENS, replies * OUTPUT_TOKENS)
    assert answer.budget_refused
    await service.ask("m", question("b", 0), Deadline(20))
    assert [asked.body["max_completion_tokens"] for asked in server.asked] == [200, 200 + ROOM, 200 + ROOM]
    assert (service.accounts()[0].nonsense, service.accounts()[0].retries) == (0, 1)
    await service.close()


async def test_a_model_that_never_has_room_enough_is_given_up(server: ModelServer) -> None:
    server.say = lambda asked: starved(as_error=False)
    service = JudgeService(settings(server))
    with pytest.raises(EpisodeFailed, match="the model stopped at: length"):
        await service.ask("m", question("a", 0), Deadline(20))
    assert len(server.asked) == 4, "once without room, then nonsense_attempts"
    await service.close()


def test_doctor_gives_a_model_room_to_think(server: ModelServer) -> None:
    server.say = lambda asked: json.dumps({"sum": 5}) if asked.body["max_completion_tokens"] >= ROOM else ""
    (check,) = answers(settings(server))
    assert (check.status, len(server.asked)) == (CheckStatus.OK, 1)


def test_doctor_asks_without_thinking_where_a_model_can_be_told_so(server: ModelServer) -> None:
    server.say = lambda asked: json.dumps({"sum": 5})
    models = settings(server).models["m"]
    (check,) = answers(LlmSettings({"m": replace(models, without_thinking={"reasoning_effort": "none"})}))
    assert check.status is CheckStatus.OK
    assert (server.asked[0].body["reasoning_effort"], server.asked[0].body["max_completion_tokens"]) == ("none", 64)


def test_doctor_says_where_a_model_cannot_be_kept_from_thinking(server: ModelServer) -> None:
    refuses = always_thinks(BUDGETS[0])

    def say(asked: Asked) -> object:
        said = refuses(asked)
        return json.dumps({"sum": 5}) if said == SAME else said

    server.say = say
    (check,) = answers(settings(server, "gemini"))
    assert check.status is CheckStatus.OK
    assert "cannot be kept from thinking" in check.found
    server.say = lambda asked: json.dumps({"sum": 5})
    (check,) = answers(settings(server, "gemini"))
    assert "thinking" not in check.found


async def test_what_was_remembered_is_of_one_model(server: ModelServer, tmp_path: Path) -> None:
    server.say = refusing(lambda body: NO_TEMPERATURE if "temperature" in body and body["model"] == "served" else "")
    model = settings(server).models["m"]
    service = JudgeService(LlmSettings({"m": model, "n": replace(model, model="another")}), tmp_path)
    for name in ("m", "n"):
        await service.ask(name, question("a"), Deadline(20))
    assert ["temperature" in asked.body for asked in server.asked] == [True, False, True]
    await service.close()
