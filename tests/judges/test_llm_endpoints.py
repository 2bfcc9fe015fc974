"""Real endpoints on loopback that answer, stall, refuse, cut off, lie or chat: an answer that fits, or a failure."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from judges.llm.accounts import Accounts, ModelAccount
from judges.llm.client import Client
from judges.llm.endpoint import make_client
from judges.llm.interface import Image, LlmQuestion
from judges.llm.keys import Key
from judges.llm.service import JudgeService
from judges.llm.settings import LlmSettings, ModelSettings
from records.deadline import Deadline
from records.failures import EpisodeFailed, FailureKind
from tests.judges.llm_server import CUT, INPUT_TOKENS, OUTPUT_TOKENS, SAME, STALL, ModelServer, Status, model_server

KEY = "key-that-nobody-may-see-7f3a"
PNG = b"\x89PNG\r\n\x1a\nnot much of a picture"


class Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid")

    why: str
    same: bool


QUESTION = LlmQuestion("test/1", "You compare.", ("the first", Image(PNG), "the second"), Verdict, max_tokens=200)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYMARK_TEST_KEY", KEY)
    monkeypatch.setattr("judges.llm.endpoint._FIRST_PAUSE_S", 0.02)


@pytest.fixture(params=["openai", "gemini"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def model(server: ModelServer, client: str, **changes: object) -> ModelSettings:
    path = "/v1" if client == "openai" else ""
    given = {
        "model": "served",
        "client": client,
        "base_url": server.url + path,
        "key_variable": "WAYMARK_TEST_KEY",
        "usd_per_million_input": 1.0,
        "usd_per_million_output": 10.0,
        **changes,
    }
    return ModelSettings(**given)  # type: ignore[arg-type]


@pytest.fixture
async def service(server: ModelServer, client: str, tmp_path: Path) -> AsyncIterator[JudgeService]:
    made = JudgeService(LlmSettings({"m": model(server, client)}), tmp_path / "judging")
    yield made
    await made.close()


def account(service: JudgeService) -> ModelAccount:
    return service.accounts()[0]


@pytest.fixture(scope="module", autouse=True)
def sdks_at_hand() -> None:
    """Let each client answer once: an SDK imports half of itself at its first request, in seconds on a slow machine."""

    async def asked(client: str, server: ModelServer) -> None:
        service = JudgeService(LlmSettings({"m": model(server, client)}))
        await service.ask("m", QUESTION, Deadline(60))
        await service.close()

    with pytest.MonkeyPatch.context() as changed, model_server() as server:
        changed.setenv("WAYMARK_TEST_KEY", KEY)
        for client in ("openai", "gemini"):
            asyncio.run(asked(client, server))


async def failure(service: JudgeService, limit_s: float = 20.0) -> EpisodeFailed:
    with pytest.raises(EpisodeFailed) as caught:
        await service.ask("m", QUESTION, Deadline(limit_s))
    assert caught.value.failure.kind is FailureKind.JUDGE
    assert KEY not in str(caught.value)
    return caught.value


async def test_answer_of_the_schema_with_what_it_cost(server: ModelServer, service: JudgeService, client: str) -> None:
    answer = await service.ask("m", QUESTION, Deadline(20))
    assert answer.value == Verdict(why="both say so", same=True)
    assert (answer.input_tokens, answer.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)
    assert answer.cost_usd == pytest.approx((INPUT_TOKENS * 1.0 + OUTPUT_TOKENS * 10.0) / 1e6)
    (asked,) = server.asked
    assert all(part in asked.text for part in ("the first", "the second", "You compare."))
    assert base64.b64encode(PNG).decode() in asked.text.replace("-", "+").replace("_", "/")
    sent = asked.headers["authorization"] if client == "openai" else asked.headers["x-goog-api-key"]
    assert KEY in sent
    assert '"why"' in json.dumps(asked.body), "the schema goes with the question"


async def test_thinking_budget_goes_with_the_question(server: ModelServer, service: JudgeService, client: str) -> None:
    question = LlmQuestion("test/1", "s", ("q",), Verdict, max_tokens=50, thinking_tokens=300)
    await service.ask("m", question, Deadline(20))
    body = server.asked[0].body
    if client == "gemini":
        assert body["generationConfig"]["thinkingConfig"]["thinking_budget"] == 300
        assert body["generationConfig"]["maxOutputTokens"] == 350
    else:
        assert body["max_completion_tokens"] == 350


@pytest.mark.parametrize(("budget", "sent"), [(0, True), (300, False), (None, False)])
async def test_a_model_is_kept_from_thinking_where_a_question_is_to_be_answered_without(
    server: ModelServer, budget: int | None, sent: bool
) -> None:
    fields = {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}}
    asking = make_client(model(server, "openai", without_thinking=fields), Key(KEY))
    await asking.complete(replace(QUESTION, thinking_tokens=budget), 20.0)
    await asking.close()
    (asked,) = server.asked
    assert {name: asked.body.get(name) for name in fields} == (fields if sent else dict.fromkeys(fields))


def test_googles_models_have_a_budget_instead() -> None:
    with pytest.raises(ValueError, match="without_thinking must be nothing with client gemini"):
        ModelSettings("gemini-2.5-flash", client="gemini", without_thinking={"reasoning_effort": "none"})


TROUBLES = {
    "stalls": (STALL, "judge_timeout"),
    "503": (Status(503), "judge_unreachable"),
    "429": (Status(429), "judge_limited"),
    "500 with a page": (Status(500, body="<html>oops</html>"), "judge_unreachable"),
    "is cut off": (CUT, "judge_unreachable"),
    "no JSON at all": (Status(200, body="<html>hello</html>"), "judge_nonsense"),
    "JSON of another kind": (Status(200, body='{"choices": 3, "candidates": 3}'), "judge_nonsense"),
    "lies about types": (json.dumps({"why": 3, "same": "yes"}), "judge_nonsense"),
    "another shape": (json.dumps({"verdict": True}), "judge_nonsense"),
    "prose": ("I would rather say yes than no.", "judge_nonsense"),
    "two answers": ('{"why": "a", "same": true} or {"why": "b", "same": false}', "judge_nonsense"),
    "nothing": ("", "judge_nonsense"),
}


@pytest.mark.parametrize(("trouble", "code"), TROUBLES.values(), ids=TROUBLES)
async def test_trouble_that_passes_costs_time_only(
    server: ModelServer, service: JudgeService, trouble: object, code: str
) -> None:
    server.script = [trouble]
    answer = await service.ask("m", QUESTION, Deadline(20))
    assert answer.value.same
    assert len(server.asked) == 2
    held = account(service)
    assert (held.questions, held.requests, held.retries, held.failures) == (1, 2, 1, 0)
    assert held.nonsense == (code == "judge_nonsense")


@pytest.mark.parametrize(("trouble", "code"), TROUBLES.values(), ids=TROUBLES)
async def test_trouble_that_stays_is_the_judges_failure_and_no_verdict(
    server: ModelServer, service: JudgeService, trouble: object, code: str
) -> None:
    another = LlmQuestion("test/1", "s", ("q",), Verdict, max_tokens=50)
    await service.ask("m", another, Deadline(60))  # makes the client, which takes a second where much else is done
    server.asked.clear()
    server.script = [trouble] * 1000
    # Nonsense is given up after so many answers, everything else is tried until the time is over.
    error = await failure(service, 20 if code == "judge_nonsense" else 3)
    assert error.failure.code.name == code
    assert "model m (served)" in error.failure.detail
    ends = time.monotonic() + 20
    while not any(one.failures for one in service.accounts()) and time.monotonic() < ends:
        await asyncio.sleep(0.05)  # who gives up first, asker or service, is a matter of milliseconds
    assert account(service).failures == 1
    if code == "judge_nonsense":
        assert len(server.asked) == 3, "nonsense_attempts"


async def test_what_the_endpoint_said_is_told_however_long_its_failure_takes_to_be_written_down(
    server: ModelServer, service: JudgeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = service._accounts.add

    def slowly(account: ModelAccount) -> None:
        time.sleep(0.3 if account.failures else 0)
        add(account)

    monkeypatch.setattr(service._accounts, "add", slowly)
    server.script = [Status(503)] * 1000
    error = await failure(service, 3)
    assert error.failure.code.name == "judge_unreachable"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_what_is_asked_goes_nowhere_but_to_the_endpoint_that_is_named(
    server: ModelServer, service: JudgeService, status: int
) -> None:
    with model_server() as other:
        server.script = [Status(status, (("location", f"{other.url}/v1/chat/completions"),))] * 100
        error = await failure(service, 3)
        assert other.asked == [], "pages and answers would be told to a host that nobody configured"
    assert error.failure.kind is FailureKind.JUDGE


@pytest.mark.parametrize("counted", [10**30, -(10**12)])
async def test_counts_that_no_reply_has_are_nonsense_and_no_account(
    server: ModelServer, service: JudgeService, client: str, counted: int
) -> None:
    usage = (
        {"usage": {"prompt_tokens": counted}, "choices": [{"message": {"content": SAME}}]}
        if client == "openai"
        else {"usageMetadata": {"promptTokenCount": counted}, "candidates": [{"content": {"parts": [{"text": SAME}]}}]}
    )
    server.script = [Status(200, body=json.dumps(usage))] * 100
    error = await failure(service, 3)
    assert error.failure.kind is FailureKind.JUDGE
    server.script = []
    await service.ask("m", QUESTION, Deadline(20))
    (account,) = service._accounts.all()
    assert 0 <= account.input_tokens < 10**6


def test_an_account_is_as_it_was_where_it_cannot_be_written(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "accounts.sqlite", LlmSettings())
    accounts.add(ModelAccount("m", requests=1, input_tokens=5))
    with pytest.raises(OSError, match="too large"):
        accounts.add(ModelAccount("m", requests=1, input_tokens=10**30))
    accounts.add(ModelAccount("m", requests=1, input_tokens=2))
    assert [account.input_tokens for account in accounts.all()] == [7]
    accounts.close()


@pytest.mark.parametrize("status", [429, 503])
async def test_endpoint_that_asks_for_time_gets_it(server: ModelServer, service: JudgeService, status: int) -> None:
    server.script = [Status(status, (("retry-after", "1"),))]
    began = time.monotonic()
    await service.ask("m", QUESTION, Deadline(20))
    assert time.monotonic() - began >= 1.0
    server.script = [Status(status, (("retry-after", "60"),))]
    began = time.monotonic()
    with pytest.raises(EpisodeFailed, match="not now"):
        await service.ask("m", LlmQuestion("test/1", "s", ("another",), Verdict), Deadline(40))
    assert time.monotonic() - began < 20, "nobody waits for what will be too late"


async def test_what_an_endpoint_said_outlives_an_attempt_that_the_deadline_cuts(
    server: ModelServer, service: JudgeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judges.llm.endpoint._ATTEMPT_S", 1.0)
    await service.ask("m", QUESTION, Deadline(60))  # the client's start takes none of the time below
    server.script = [Status(429), *[STALL] * 1000]
    another = LlmQuestion("test/1", "s", ("another",), Verdict)
    with pytest.raises(EpisodeFailed) as caught:
        await service.ask("m", another, Deadline(8))
    assert caught.value.failure.code.name == "judge_limited"


async def test_a_client_that_takes_long_to_start_is_made_once_and_holds_nobody_up(
    server: ModelServer, client: str, tmp_path: Path
) -> None:
    made: list[str] = []
    begun, others_go_on = threading.Event(), threading.Event()

    def slowly(settings: ModelSettings, key: Key) -> Client:
        begun.set()
        if others_go_on.wait(10):
            made.append(settings.model)
        return make_client(settings, key)

    service = JudgeService(LlmSettings({"m": model(server, client)}), make=slowly)
    questions = [LlmQuestion("test/1", "s", (f"question {n}",), Verdict) for n in range(3)]
    asked = asyncio.gather(*(service.ask("m", each, Deadline(60)) for each in questions))
    while not begun.is_set():
        await asyncio.sleep(0.01)
    others_go_on.set()
    assert all(answer.value.same for answer in await asked)
    await service.close()
    assert made == ["served"], "none: the loop waited for the client; several: each question made one"


async def test_google_says_in_the_body_how_long_to_wait(server: ModelServer, tmp_path: Path) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}]
    server.script = [Status(429, body=json.dumps({"error": {"code": 429, "message": "slow", "details": details}}))]
    service = JudgeService(LlmSettings({"m": model(server, "gemini")}), tmp_path)
    began = time.monotonic()
    await service.ask("m", QUESTION, Deadline(20))
    assert time.monotonic() - began >= 1.0
    await service.close()


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_refusal_is_not_asked_again_and_says_no_key(
    server: ModelServer, service: JudgeService, status: int
) -> None:
    server.script = [Status(status, body=json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}))]
    error = await failure(service)
    assert (error.failure.code.name, len(server.asked)) == ("judge_refused", 1)
    assert "[key]" in error.failure.detail


async def test_prose_around_one_object_is_read_strictly(server: ModelServer, service: JudgeService) -> None:
    server.script = ['Well {let me see}:\n```json\n{"why": "same number", "same": false}\n```\nI hope this helps.']
    assert (await service.ask("m", QUESTION, Deadline(20))).value == Verdict(why="same number", same=False)


async def test_model_is_told_what_was_wrong_with_its_reply(server: ModelServer, service: JudgeService) -> None:
    server.script = [json.dumps({"why": "so", "same": "yes"})]
    await service.ask("m", QUESTION, Deadline(20))
    assert "same: Input should be a valid boolean" in server.asked[1].text


async def test_every_reply_is_paid_for_nonsense_too(server: ModelServer, service: JudgeService) -> None:
    server.script = ["prose", "prose"]
    answer = await service.ask("m", QUESTION, Deadline(20))
    each = (INPUT_TOKENS * 1.0 + OUTPUT_TOKENS * 10.0) / 1e6
    assert answer.cost_usd == pytest.approx(3 * each)
    held = account(service)
    assert (held.input_tokens, held.output_tokens) == (3 * INPUT_TOKENS, 3 * OUTPUT_TOKENS)
    assert held.cost_usd == pytest.approx(3 * each)


async def test_endpoint_without_schemas_is_told_the_schema_in_words(server: ModelServer, tmp_path: Path) -> None:
    service = JudgeService(LlmSettings({"m": model(server, "openai")}), tmp_path)
    server.script = [Status(400, body='{"error": {"message": "response_format is not supported"}}')]
    assert (await service.ask("m", QUESTION, Deadline(20))).value.same
    other = LlmQuestion("test/1", "s", ("another",), Verdict)
    assert (await service.ask("m", other, Deadline(20))).value.same
    held, plain, after = server.asked
    assert "response_format" in held.body
    assert "response_format" not in plain.body
    assert "has to fit this JSON schema" in plain.text
    assert "response_format" not in after.body, "it is not asked for what it refuses twice"
    await service.close()


async def test_bad_request_of_another_cause_does_not_turn_schemas_off(server: ModelServer, tmp_path: Path) -> None:
    service = JudgeService(LlmSettings({"m": model(server, "openai")}), tmp_path)
    server.script = [Status(400), Status(400)]
    assert (await failure(service)).failure.code.name == "judge_refused"
    await service.ask("m", LlmQuestion("test/1", "s", ("another",), Verdict), Deadline(20))
    assert "response_format" in server.asked[-1].body
    await service.close()


async def test_key_that_is_missing_is_said_without_a_request(
    server: ModelServer, service: JudgeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WAYMARK_TEST_KEY")
    error = await failure(service)
    assert "the environment variable WAYMARK_TEST_KEY is not set" in error.failure.detail
    assert server.asked == []


async def test_key_from_a_file(server: ModelServer, client: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{KEY}\n")
    settings = model(server, client, key_variable="", key_file=str(tmp_path / "secret"))
    service = JudgeService(LlmSettings({"m": settings}))
    await service.ask("m", QUESTION, Deadline(20))
    assert any(KEY in value for value in server.asked[0].headers.values())
    await service.close()
