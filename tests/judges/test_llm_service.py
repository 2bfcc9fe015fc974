"""One request for equal questions, known answers for nothing, limits that hold, and a budget that is never exceeded."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from judges.llm.accounts import FILE_NAME, Accounts, ModelAccount, read_accounts
from judges.llm.cache import question_key
from judges.llm.client import retry_after_s
from judges.llm.interface import Image, LlmQuestion
from judges.llm.keys import KeyMissing, find_key
from judges.llm.limits import Limits
from judges.llm.service import JudgeService
from judges.llm.settings import LlmSettings, ModelSettings
from records.deadline import Deadline
from records.failures import EpisodeFailed
from tests.judges.llm_server import INPUT_TOKENS, OUTPUT_TOKENS, STALL, ModelServer, Status, model_server
from tests.redis_server import redis_server


class Same(BaseModel):
    why: str
    same: bool


EACH_USD = (INPUT_TOKENS * 1.0 + OUTPUT_TOKENS * 10.0) / 1e6


def question(text: str) -> LlmQuestion[Same]:
    return LlmQuestion("test/1", "You compare.", (text,), Same, max_tokens=200, thinking_tokens=0)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def settings(server: ModelServer, **changes: object) -> LlmSettings:
    model = ModelSettings("served", base_url=f"{server.url}/v1", usd_per_million_input=1.0, usd_per_million_output=10.0)
    return replace(LlmSettings({"m": model}), **changes)  # type: ignore[arg-type]


def of_one(service: JudgeService) -> ModelAccount:
    (account,) = service.accounts()
    return account


async def test_equal_questions_under_way_are_one_request(server: ModelServer) -> None:
    server.delay_s = 0.3
    service = JudgeService(settings(server))
    answers = await asyncio.gather(*(service.ask("m", question("a"), Deadline(20)) for _ in range(10)))
    assert len(server.asked) == 1
    assert sorted(answer.cost_usd for answer in answers) == pytest.approx([0.0] * 9 + [EACH_USD])
    assert [answer.cached for answer in answers].count(True) == 9
    held = of_one(service)
    assert (held.questions, held.cached, held.requests) == (10, 9, 1)
    await service.close()


async def test_asker_who_goes_away_takes_nothing_from_the_others(server: ModelServer) -> None:
    server.delay_s = 0.5
    service = JudgeService(settings(server))
    first = asyncio.create_task(service.ask("m", question("a"), Deadline(20)))
    await asyncio.sleep(0.2)
    second = asyncio.create_task(service.ask("m", question("a"), Deadline(20)))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).value.same
    assert len(server.asked) == 1
    await service.close()


async def test_asker_with_more_time_asks_on_where_the_first_had_none_left(server: ModelServer) -> None:
    server.script = [STALL]
    service = JudgeService(settings(server))
    hurried = asyncio.create_task(service.ask("m", question("a"), Deadline(0.5)))
    await asyncio.sleep(0.2)
    answer = await service.ask("m", question("a"), Deadline(20))
    assert answer.value.same
    with pytest.raises(EpisodeFailed, match="judge/judge_timeout"):
        await hurried
    await service.close()


async def test_asker_with_more_time_asks_on_whatever_the_first_was_told_last(server: ModelServer) -> None:
    server.script = [Status(429, (("retry-after", "2"),)), Status(503, (("retry-after", "2"),))]
    server.delay_s = 0.2
    service = JudgeService(settings(server))
    hurried = asyncio.create_task(service.ask("m", question("a"), Deadline(1.5)))
    await asyncio.sleep(0.1)
    answer = await service.ask("m", question("a"), Deadline(30))
    assert answer.value.same
    with pytest.raises(EpisodeFailed, match="judge/judge_limited"):
        await hurried
    await service.close()


async def test_a_failure_that_lasts_is_every_askers(server: ModelServer) -> None:
    server.say = lambda asked: Status(401)
    server.delay_s = 0.3
    service = JudgeService(settings(server))
    asked = (service.ask("m", question("a"), Deadline(limit_s)) for limit_s in (10, 30))
    errors = await asyncio.gather(*asked, return_exceptions=True)
    assert [str(error)[:19] for error in errors] == ["judge/judge_refused"] * 2
    assert len(server.asked) == 1
    await service.close()


async def test_known_answer_costs_nothing_after_a_restart_too(server: ModelServer, tmp_path: Path) -> None:
    service = JudgeService(settings(server), tmp_path)
    first = await service.ask("m", question("a"), Deadline(20))
    await service.close()
    service = JudgeService(settings(server), tmp_path)
    again = await service.ask("m", question("a"), Deadline(20))
    assert (again.value, again.cached, again.cost_usd, len(server.asked)) == (first.value, True, 0.0, 1)
    held = of_one(service)
    assert (held.questions, held.cached, held.requests, held.cost_usd) == (2, 1, 1, pytest.approx(EACH_USD))
    await service.close()
    assert read_accounts(tmp_path / FILE_NAME) == (held,)
    assert read_accounts(tmp_path / "nowhere") == ()


async def test_answer_that_was_tampered_with_is_asked_again(server: ModelServer, tmp_path: Path) -> None:
    service = JudgeService(settings(server), tmp_path)
    await service.ask("m", question("a"), Deadline(20))
    service._cache.put(question_key(service._settings.models["m"], question("a")), '{"same": "cos\\nsystem"}')
    assert (await service.ask("m", question("a"), Deadline(20))).value.same
    assert len(server.asked) == 2
    await service.close()


CHANGED = [
    replace(question("a"), prompt="test/2"),
    replace(question("a"), system="You judge."),
    replace(question("a"), parts=("b",)),
    replace(question("a"), parts=("a", Image(b"1"))),
    replace(question("a"), parts=("a", Image(b"2"))),
    replace(question("a"), max_tokens=201),
    replace(question("a"), temperature=0.5),
    replace(question("a"), thinking_tokens=1),
]


def test_key_of_a_question_covers_all_that_decides_its_answer() -> None:
    model = ModelSettings("m")
    models = [model, replace(model, model="n"), replace(model, client="gemini"), replace(model, base_url="http://h/v1")]
    keys = {question_key(model, asked) for asked in [question("a"), *CHANGED]}
    keys |= {question_key(other, question("a")) for other in models}
    assert len(keys) == 1 + len(CHANGED) + 3
    dearer = replace(model, usd_per_million_input=3.0, key_variable="K", requests_per_minute=1)
    assert question_key(dearer, question("a")) == question_key(model, question("a"))


async def test_budget_is_never_exceeded_and_says_what_to_do(server: ModelServer, tmp_path: Path) -> None:
    some = settings(server, budget_usd=10 * EACH_USD)
    service = JudgeService(some, tmp_path)
    asked = (service.ask("m", question(f"q{i}"), Deadline(20)) for i in range(30))
    said = await asyncio.gather(*asked, return_exceptions=True)
    stopped = [error for error in said if isinstance(error, EpisodeFailed)]
    assert stopped
    assert {error.failure.code.name for error in stopped} == {"judge_budget"}
    assert "of judges.llm.budget_usd 0.02 judges have 0.00" in stopped[0].failure.detail
    assert stopped[0].failure.code.ends_run
    held = of_one(service)
    assert held.cost_usd == pytest.approx(EACH_USD * len(server.asked))
    assert 0 < held.cost_usd <= 10 * EACH_USD
    await service.close()

    service = JudgeService(some, tmp_path)
    while True:
        try:
            await service.ask("m", question(f"later {len(server.asked)}"), Deadline(20))
        except EpisodeFailed:
            break
    assert of_one(service).cost_usd <= 10 * EACH_USD, "a run that goes on counts on"
    await service.close()
    service = JudgeService(replace(some, budget_usd=20 * EACH_USD), tmp_path)
    assert (await service.ask("m", question("with more"), Deadline(20))).value.same
    await service.close()


async def test_budget_of_tokens_holds_as_well(server: ModelServer) -> None:
    service = JudgeService(settings(server, budget_tokens=3 * (INPUT_TOKENS + OUTPUT_TOKENS)))
    for number in range(2):
        await service.ask("m", question(str(number)), Deadline(20))
    with pytest.raises(
        EpisodeFailed, match=r"of budget_tokens 3300 1100; the next question may cost .* and 15\d\d tokens"
    ):
        await service.ask("m", replace(question("longer"), max_tokens=1500), Deadline(20))
    await service.close()


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(0, 1000)), max_size=20))
def test_what_is_reserved_and_spent_never_passes_the_budget(requests: list[tuple[float, int]]) -> None:
    accounts = Accounts(None, LlmSettings(budget_usd=10.0, budget_tokens=3000))

    async def request(usd: float, tokens: int) -> None:
        try:
            async with accounts.reserved(usd, tokens):
                await asyncio.sleep(0)
                accounts.add(ModelAccount("m", requests=1, input_tokens=tokens, cost_usd=usd))
        except EpisodeFailed:
            return

    async def all_at_once() -> None:
        await asyncio.gather(*(request(usd, tokens) for usd, tokens in requests))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("judges.llm.accounts._ROOM_S", 0.001)
        asyncio.run(all_at_once())
    spent = accounts.all()[0] if accounts.all() else ModelAccount("m")
    assert spent.cost_usd <= 10.0 + 1e-9
    assert spent.input_tokens <= 3000
    accounts.close()


async def test_no_minute_holds_more_requests_or_tokens_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judges.llm.limits._WINDOW_S", 0.5)
    limits = Limits(ModelSettings("m", requests_per_minute=4, tokens_per_minute=100, concurrent_requests=50))
    begun: list[tuple[float, int]] = []

    async def one(tokens: int) -> None:
        async with limits.turn(tokens):
            begun.append((time.monotonic(), tokens))

    await asyncio.gather(*(one(tokens) for tokens in [10] * 6 + [60, 60, 500, 10]))
    for at, _ in begun:
        within = [tokens for when, tokens in begun if at <= when < at + 0.45]
        assert len(within) <= 4
        assert sum(within) <= 100 or len(within) == 1, "a question larger than a minute's tokens goes alone"


async def test_requests_under_way_have_a_limit(server: ModelServer) -> None:
    server.delay_s = 0.2
    some = settings(server)
    few = replace(some, models={"m": replace(some.models["m"], concurrent_requests=2)})
    service = JudgeService(few)
    began = time.monotonic()
    await asyncio.gather(*(service.ask("m", question(str(i)), Deadline(20)) for i in range(6)))
    assert time.monotonic() - began >= 0.55
    await service.close()


def test_key_shows_nowhere_and_stays_in_its_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("A_KEY", "secret-1")
    key = find_key(ModelSettings("m", key_variable="A_KEY"))
    assert key.reveal() == "secret-1"
    assert "secret" not in repr(key) + str(key) + repr([key])
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(key)
    (tmp_path / "empty").write_text("")
    for wrong, said in [
        (ModelSettings("m", key_variable="NO_SUCH_KEY"), "NO_SUCH_KEY is not set"),
        (ModelSettings("m", key_file=str(tmp_path / "gone")), "cannot be read"),
        (ModelSettings("m", key_file=str(tmp_path / "empty")), "must hold one line"),
    ]:
        with pytest.raises(ValueError, match=said):
            find_key(wrong)


NO_KEYS = ["sk-one\nsk-two", "sk-one\x7f", "sk-one\tsk-two", "sk-\u00e4\u00f6", "sk-one\u200b", "sk-\x00"]


@pytest.mark.parametrize("source", ["key_variable", "key_file"])
@pytest.mark.parametrize("wrong", NO_KEYS, ids=ascii)
def test_a_key_that_no_request_can_carry_is_refused_wherever_it_comes_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, wrong: str
) -> None:
    def found(key: str) -> str:
        if source == "key_file":
            (tmp_path / "key").write_text(key)
            return find_key(ModelSettings("m", key_file=str(tmp_path / "key"))).reveal()
        monkeypatch.setattr("os.environ", {"A_KEY": key})
        return find_key(ModelSettings("m", key_variable="A_KEY")).reveal()

    with pytest.raises(KeyMissing, match="must hold one line") as caught:
        found(wrong)
    assert "sk-" not in str(caught.value)
    assert found(" sk-one \r\n") == "sk-one"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": ""}, "model must be the name of a model"),
        ({"client": "openia"}, "client must be 'openai' or 'gemini'"),
        ({"base_url": "127.0.0.1:8000"}, "base_url must be an address"),
        ({"base_url": "http://me:secret@host/v1"}, "found 'host/v1'"),
        ({"key_variable": "A", "key_file": "b"}, "key_file must be empty beside key_variable"),
    ],
)
def test_settings_that_ask_nobody_are_refused(changes: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        ModelSettings(**{"model": "m", **changes})
    assert "secret" not in str(caught.value)


def test_redis_address_with_a_password_is_refused() -> None:
    with pytest.raises(ValueError, match="cache must be an address without a name or password") as caught:
        LlmSettings(cache="redis://:secret@host:6379/0")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "expected"),
    [(None, 0.0), ("", 0.0), ("7", 7.0), ("-3", 0.0), ("soon", 0.0), ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0)],
)
def test_retry_after_in_both_of_its_forms(header: str | None, expected: float) -> None:
    assert retry_after_s(header, now=10.0) == expected


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    with redis_server(tmp_path, "--requirepass", "open sesame") as port:
        yield f"redis://127.0.0.1:{port}/1"


async def test_two_runs_share_answers_in_redis_and_go_on_without_it(
    server: ModelServer, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_PASSWORD", "open sesame")
    some = settings(server, cache=redis_url, cache_password_variable="A_PASSWORD")
    for run in ("one", "two"):
        service = JudgeService(some, tmp_path / run)
        assert (await service.ask("m", question("a"), Deadline(20))).value.same
        await service.close()
    assert len(server.asked) == 1
    assert [read_accounts(tmp_path / run / FILE_NAME)[0].cached for run in ("one", "two")] == [0, 1]
    monkeypatch.setenv("A_PASSWORD", "wrong")
    service = JudgeService(some, tmp_path / "three")
    assert (await service.ask("m", question("a"), Deadline(20))).value.same, "a cache in trouble costs money only"
    assert len(server.asked) == 2
    await service.close()
    assert not any(b"open sesame" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
