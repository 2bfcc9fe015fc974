"""Replies with an error, without a choice, blocked, oddly counted or far too large: told apart, and paid for."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from judges.llm.accounts import ModelAccount
from judges.llm.client import Trouble
from judges.llm.endpoint import make_client
from judges.llm.interface import LlmQuestion
from judges.llm.keys import Key
from judges.llm.service import JudgeService
from judges.llm.settings import LlmSettings, ModelSettings
from records.deadline import Deadline
from records.failures import EpisodeFailed
from tests.judges.llm_server import SAME, ModelServer, Status, chat_completion, gemini_reply, model_server

KEY = "key-that-nobody-may-see-5b21"
MIB = 2**20


class Verdict(BaseModel):
    why: str
    same: bool


def question(text: str = "a") -> LlmQuestion[Verdict]:
    return LlmQuestion("test/1", "You compare.", (text,), Verdict, max_tokens=200)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("WAYMARK_TEST_KEY", KEY)
    monkeypatch.setattr("judges.llm.endpoint._FIRST_PAUSE_S", 0.02)
    with model_server() as running:
        yield running


@pytest.fixture(params=["openai", "gemini"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def named(server: ModelServer, client: str) -> ModelSettings:
    path = "/v1" if client == "openai" else ""
    return ModelSettings("served", client, f"{server.url}{path}", key_variable="WAYMARK_TEST_KEY")


@pytest.fixture
async def service(server: ModelServer, client: str, tmp_path: Path) -> AsyncIterator[JudgeService]:
    made = JudgeService(LlmSettings({"m": named(server, client)}), tmp_path / "judging")
    yield made
    await made.close()


async def failed(service: JudgeService, limit_s: float = 20.0) -> tuple[str, str]:
    """Ask, and return the failure's code and detail."""
    with pytest.raises(EpisodeFailed) as caught:
        await service.ask("m", question(), Deadline(limit_s))
    assert not any(KEY[at : at + 6] in str(caught.value) for at in range(len(KEY) - 5)), "no piece of the key"
    return caught.value.failure.code.name, caught.value.failure.detail


def account(service: JudgeService) -> ModelAccount:
    (held,) = service.accounts()
    return held


def body(content: object) -> Status:
    return Status(200, body=json.dumps(content))


@pytest.mark.parametrize(
    ("code", "expected"), [(429, "judge_limited"), ("429", "judge_limited"), (503, "judge_unreachable")]
)
async def test_an_error_in_a_reply_counts_as_its_status_and_is_waited_out(
    server: ModelServer, service: JudgeService, code: object, expected: str
) -> None:
    error = json.dumps({"error": {"code": code, "message": "Provider returned error"}})
    server.script = [Status(200, body=error)] * 5
    assert (await service.ask("m", question("b"), Deadline(20))).value.same, "more often than nonsense_attempts"
    assert account(service).nonsense == 0
    server.script = [Status(200, (("retry-after", "60"),), error)]
    assert (await failed(service))[0] == expected
    assert len(server.asked) == 7, "nobody waits for what will be too late"


async def test_a_refusal_in_a_reply_is_not_asked_again(server: ModelServer, service: JudgeService) -> None:
    server.script = [body({"error": {"code": 401, "message": f"No user of {KEY}"}})]
    code, detail = await failed(service)
    assert (code, len(server.asked)) == ("judge_refused", 1)
    assert "No user of [key]" in detail


async def test_an_error_that_counts_tokens_is_paid_for(server: ModelServer, service: JudgeService, client: str) -> None:
    counted: dict[str, object] = {"error": {"code": 502, "message": "lost on the way"}}
    if client == "openai":
        counted["usage"] = {"prompt_tokens": 500, "completion_tokens": 50}
    else:
        counted["usageMetadata"] = {"promptTokenCount": 500, "candidatesTokenCount": 50}
    server.script = [body(counted)]
    await service.ask("m", question(), Deadline(20))
    assert (account(service).input_tokens, account(service).output_tokens) == (1500, 150)


async def test_an_error_without_a_status_is_named(server: ModelServer, service: JudgeService) -> None:
    server.script = [body({"error": {"code": "overworked", "message": "come back on Monday"}})] * 3
    code, detail = await failed(service)
    assert (code, "come back on Monday" in detail) == ("judge_nonsense", True)


LASTING = ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII"]
COUNTED = {"promptTokenCount": 7, "thoughtsTokenCount": 5}


@pytest.mark.parametrize("client", ["gemini"], indirect=True)
@pytest.mark.parametrize("of", ["prompt", "reply"])
@pytest.mark.parametrize("reason", LASTING)
async def test_what_gemini_blocks_is_named_paid_and_asked_once(
    server: ModelServer, service: JudgeService, reason: str, of: str
) -> None:
    blocked = (
        {"promptFeedback": {"blockReason": reason}} if of == "prompt" else {"candidates": [{"finishReason": reason}]}
    )
    server.script = [body({**blocked, "usageMetadata": COUNTED})]
    code, detail = await failed(service)
    assert (code, len(server.asked)) == ("judge_blocked", 1)
    assert f"the {of}" in detail
    assert reason in detail
    assert (account(service).input_tokens, account(service).output_tokens) == (7, 5)
    assert (await service.ask("m", question("another"), Deadline(20))).value.same, "the judge goes on"


@pytest.mark.parametrize("client", ["gemini"], indirect=True)
async def test_another_reason_of_gemini_is_named(server: ModelServer, service: JudgeService) -> None:
    server.script = [body({"promptFeedback": {"blockReason": "OTHER"}})] * 3
    code, detail = await failed(service)
    assert (code, len(server.asked), "OTHER" in detail) == ("judge_nonsense", 3, True)


@pytest.mark.parametrize("client", ["openai"], indirect=True)
async def test_what_a_filter_of_openai_takes_away_is_asked_once(server: ModelServer, service: JudgeService) -> None:
    reply = chat_completion("")
    reply["choices"][0]["finish_reason"] = "content_filter"
    server.script = [body(reply)]
    code, detail = await failed(service)
    assert (code, len(server.asked), "content_filter" in detail) == ("judge_blocked", 1, True)


UNREADABLE = {
    "openai": [{"choices": []}, {"choices": 3}, {"choices": [{"message": {"content": 7}}]}, {"choices": [{}]}],
    "gemini": [{"candidates": []}, {"candidates": 3}, {"candidates": [{"content": {"parts": 7}}]}, {}],
}


@pytest.mark.parametrize("which", range(4))
async def test_a_reply_that_cannot_be_read_is_paid_for(
    server: ModelServer, service: JudgeService, client: str, which: int
) -> None:
    usage = (
        {"usage": {"prompt_tokens": 500, "completion_tokens": 50}}
        if client == "openai"
        else {"usageMetadata": {"promptTokenCount": 500, "candidatesTokenCount": 50}}
    )
    server.script = [body({**UNREADABLE[client][which], **usage})] * 2
    answer = await service.ask("m", question(), Deadline(20))
    assert (answer.input_tokens, answer.output_tokens) == (2 * 500 + 1000, 2 * 50 + 100)
    held = account(service)
    assert (held.input_tokens, held.output_tokens, held.nonsense) == (2 * 500 + 1000, 2 * 50 + 100, 2)


@pytest.mark.parametrize("client", ["openai"], indirect=True)
async def test_an_answer_in_parts_of_text_is_read(server: ModelServer, service: JudgeService) -> None:
    reply = chat_completion("")
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        SAME[:9],
        {"type": "text", "text": SAME[9:]},
    ]
    reply["choices"][0]["message"]["content"] = parts
    server.script = [body(reply)]
    assert (await service.ask("m", question(), Deadline(20))).value.same
    assert len(server.asked) == 1


ODD = [5.5, "6", None, True, [], {}, "many", float("nan"), float("inf")]


@pytest.mark.parametrize("counted", ODD, ids=repr)
async def test_counts_of_an_odd_kind_lose_no_answer(
    server: ModelServer, service: JudgeService, client: str, counted: object
) -> None:
    reply: dict[str, Any] = chat_completion(SAME) if client == "openai" else gemini_reply(SAME)
    if client == "openai":
        reply["usage"] = {"prompt_tokens": counted, "completion_tokens": 3}
    else:
        reply["usageMetadata"] = {"promptTokenCount": counted, "candidatesTokenCount": 3}
    server.script = [body(reply)]
    answer = await service.ask("m", question(), Deadline(20))
    assert (len(server.asked), answer.output_tokens) == (1, 3)
    assert answer.input_tokens == (6 if counted in (5.5, "6") else 0)


@pytest.mark.parametrize("usage", [3, [], "none", None])
async def test_usage_that_is_none_loses_no_answer(
    server: ModelServer, service: JudgeService, client: str, usage: object
) -> None:
    reply: dict[str, Any] = chat_completion(SAME) if client == "openai" else gemini_reply(SAME)
    reply["usage" if client == "openai" else "usageMetadata"] = usage
    server.script = [body(reply)]
    assert (await service.ask("m", question(), Deadline(20))).input_tokens == 0
    assert len(server.asked) == 1


def bomb(mib: int) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return b"".join([*(packer.compress(bytes(MIB)) for _ in range(mib)), packer.flush()])


@pytest.mark.parametrize("code", [200, 500])
async def test_a_reply_is_read_up_to_a_limit(server: ModelServer, service: JudgeService, code: int) -> None:
    await service.ask("m", question("before"), Deadline(60))  # the SDK's import takes memory too
    server.script = [Status(code, (("content-encoding", "gzip"),), bomb(200))] * 3
    tracemalloc.start()
    try:
        name, detail = await failed(service)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (name, "MiB" in detail) == ("judge_nonsense", True)
    assert peak < 50 * MIB
    server.script = [Status(200, body="x" * 10 * MIB)] * 3
    assert (await failed(service))[0] == "judge_nonsense"


async def test_a_packed_reply_is_read(server: ModelServer, service: JudgeService, client: str) -> None:
    reply = json.dumps(chat_completion(SAME) if client == "openai" else gemini_reply(SAME))
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(reply.encode()) + packer.flush()
    server.script = [Status(200, (("content-encoding", "gzip"),), packed)]
    assert (await service.ask("m", question(), Deadline(20))).value.same


@pytest.mark.parametrize("before", [35, 60, 64, 70, 75, 250, 280, 290, 299])
async def test_no_piece_of_the_key_is_in_a_text_that_is_cut(
    server: ModelServer, service: JudgeService, before: int
) -> None:
    said = "x" * before + KEY
    replies = [
        Status(400, body=json.dumps({"error": {"message": said, "code": 400, "status": "X"}})),
        Status(400, body=said),
        Status(200, body=f"<html>{said}"),
        Status(200, body=json.dumps({"error": said})),
        Status(200, body=json.dumps({"choices": said, "candidates": said})),
        said,
        "{" + said,
    ]
    for reply in replies:
        server.script = [reply] * 3
        await failed(service)


async def test_a_key_that_a_reply_holds_is_written_nowhere(
    server: ModelServer, service: JudgeService, tmp_path: Path
) -> None:
    server.script = [json.dumps({"why": f"you said {KEY}", "same": True})]
    assert (await service.ask("m", question(), Deadline(20))).value.why == "you said [key]"
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize("key", ["sk-first-line\nsk-second-line", "sk-\N{LATIN SMALL LETTER A WITH DIAERESIS}-line"])
async def test_a_request_that_cannot_be_written_shows_its_kind_alone(
    server: ModelServer, client: str, key: str
) -> None:
    asking = make_client(named(server, client), Key(key))
    with pytest.raises((Trouble, UnicodeEncodeError)) as caught:
        await asking.complete(question(), 5.0)
    await asking.close()
    if isinstance(caught.value, Trouble):
        assert "line" not in caught.value.detail
    assert server.asked == []
