"""What comes of a server's answer, whatever it says: another plays vLLM and answers as it is told."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest

from policy.client import RequestRefused, Sampling, ServerUnreachable, WrongVersion
from policy.published_weights import PublishedWeights, WeightsRejected
from policy.settings import PolicySettings
from policy.vllm import api as api_module
from policy.vllm.api import UNPUBLISHED, VllmApi
from policy.vllm.client import VllmEndpoint, vllm_client
from records.failures import EpisodeFailed
from tests.policy.told_server import Told, told

SEVEN = f"7-{'a' * 64}"
WEIGHTS = PublishedWeights(7, "a" * 64, "/weights/7")
GREEDY = Sampling(temperature=0, max_new_tokens=4)


def reply(**changes: Any) -> dict[str, Any]:
    """A reply as vLLM gives it, with what is not asked for left out."""
    choice = {
        "token_ids": [5, 6],
        "finish_reason": "stop",
        "logprobs": {"content": [{"token_id": 5, "logprob": -0.5}, {"token_id": 6, "logprob": -0.25}]},
        "weight_versions": [{"version": SEVEN, "start": 0, "end": 2}],
    }
    return {"choices": [{**choice, **changes}], "prompt_logprobs": None}


async def complete(server: Told, sampling: Sampling = GREEDY, *, seeds: bool = False) -> Any:
    async with asyncio.timeout(30), VllmApi(server.url, "t0ken") as api:
        return await api.complete([1, 2, 3], sampling, stop_ids=(9,), seeds=seeds)


async def test_a_reply_is_taken_as_it_is_and_the_request_says_all_that_matters() -> None:
    async with told(generate=(200, reply())) as server:
        completion = await complete(server, Sampling(temperature=0.7, max_new_tokens=4, seed=11, version=7), seeds=True)
    assert completion.action_ids == (5, 6)
    assert completion.logprobs == (-0.5, -0.25)
    assert (completion.version, completion.finish_reason) == (7, "stop")
    (_, asked) = server.heard[0]
    assert asked["token_ids"] == [1, 2, 3]
    assert asked["cache_salt"] == "version-7"
    sampling = asked["sampling_params"]
    wanted = {"temperature": 0.7, "max_tokens": 4, "seed": 11, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
    assert {name: sampling[name] for name in wanted} == wanted
    assert sampling["stop_token_ids"] == [9]
    assert server.headers == [b"bearer t0ken"]


async def test_a_seed_is_sent_only_where_the_engine_bears_it() -> None:
    async with told(generate=(200, reply())) as server:
        await complete(server, Sampling(seed=11))
    assert "seed" not in server.heard[0][1]["sampling_params"]


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (
            (200, reply(weight_versions=[{"version": SEVEN}, {"version": "8-" + "b" * 64}])),
            ServerUnreachable,
            "several",
        ),
        ((200, reply(weight_versions=[])), ServerUnreachable, "several versions"),
        ((200, reply(finish_reason="abort")), ServerUnreachable, "broke a reply off"),
        ((200, reply(token_ids=[5, 7])), ServerUnreachable, "other tokens"),
        ((200, reply(token_ids=[])), ServerUnreachable, "other tokens"),
        ((200, reply(logprobs=None)), ServerUnreachable, "no log-probabilities"),
        ((200, {"choices": [], "prompt_logprobs": None}), ServerUnreachable, "0 replies"),
        ((200, {"nonsense": 1}), ServerUnreachable, "something else than expected"),
        ((200, b"not json"), ServerUnreachable, "something else than expected"),
        ((400, {"error": "prompt too long"}), RequestRefused, "prompt too long"),
        ((401, b""), ServerUnreachable, "status 401"),
        ((404, b""), ServerUnreachable, "knows no /inference/v1/generate"),
        ((429, b"slow down"), ServerUnreachable, "status 429, slow down"),
        ((500, b"engine died"), ServerUnreachable, "engine died"),
        (None, ServerUnreachable, "does not answer"),
    ],
)
async def test_an_answer_that_is_no_whole_reply_is_an_error_that_says_why(
    answer: tuple[int, object] | None, error: type[Exception], says: str
) -> None:
    async with told(generate=answer) as server:
        with pytest.raises(error, match=says):
            await complete(server)


async def test_a_reply_of_other_weights_is_refused_and_weights_as_started_are_no_version() -> None:
    async with told(generate=(200, reply(weight_versions=[{"version": "default"}]))) as server:
        assert (await complete(server)).version == UNPUBLISHED
        with pytest.raises(WrongVersion, match="expected version 0, version -1 answered"):
            await complete(server, Sampling(version=0))


async def test_a_cut_distribution_is_refused_before_anything_is_asked() -> None:
    async with told(generate=(200, reply())) as server:
        with pytest.raises(RequestRefused, match="top_p must be 1"):
            await complete(server, Sampling(top_p=0.9))
    assert server.heard == []


async def test_scores_are_those_of_the_action_after_the_prompt() -> None:
    scored = [
        None,
        {"2": {"logprob": -9.0}},
        {"3": {"logprob": -9.0}},
        {"5": {"logprob": -0.5}},
        {"6": {"logprob": -1}},
    ]
    answer = {**reply(), "prompt_logprobs": scored}
    async with told(generate=(200, answer)) as server, VllmApi(server.url, "") as api:
        assert await api.score([1, 2, 3], [5, 6]) == [-0.5, -1.0]
        with pytest.raises(ServerUnreachable, match="other tokens"):
            await api.score([1, 2, 3], [5, 7])
        with pytest.raises(ServerUnreachable, match="other tokens"):
            await api.score([1, 2], [5, 6])
    assert server.headers[0] == b""


PUBLICATION = ("pause", "collective_rpc", "update_weight_version", "reset_prefix_cache", "resume", "weight_info")
RIGHT: dict[str, Any] = {
    "pause": (200, {}),
    "collective_rpc": (200, {"results": [{"refused": ""}]}),
    "update_weight_version": (200, {}),
    "reset_prefix_cache": (200, {"success": True}),
    "resume": (200, {}),
    "weight_info": (200, {"weight_version": SEVEN}),
}


async def test_a_publication_pauses_loads_names_forgets_and_resumes_in_this_order() -> None:
    async with told(**RIGHT) as server, VllmApi(server.url, "") as api:
        taken = await api.take_weights(WEIGHTS, drain_timeout_s=5)
    assert (taken.version, taken.checksum) == (7, "a" * 64)
    assert tuple(path.strip("/").partition("?")[0] for path, _ in server.heard) == PUBLICATION
    assert server.heard[1][1] == {"method": "waymark_take_weights", "args": ["/weights/7", "a" * 64]}


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"collective_rpc": (500, b"half way")}, "half way"),
        ({"collective_rpc": (400, b"no such method")}, "status 400, no such method"),
        ({"collective_rpc": (200, {"results": []})}, "no worker"),
        ({"update_weight_version": (500, b"")}, "status 500"),
        ({"reset_prefix_cache": (200, {"success": False})}, "keeps what it cached"),
    ],
)
async def test_a_server_that_fails_in_the_middle_of_a_publication_stays_paused(
    broken: dict[str, tuple[int, object] | None], says: str
) -> None:
    async with told(**{**RIGHT, **broken}) as server, VllmApi(server.url, "") as api:
        with pytest.raises(ServerUnreachable, match=says):
            await api.take_weights(WEIGHTS, drain_timeout_s=5)
    assert "/resume" not in [path for path, _ in server.heard]


def with_adapters(loaded: Any, *laid_out: dict[str, str]) -> dict[str, Any]:
    """Answers of a server that lays adapters out as ``laid_out``, one a worker, and says ``loaded`` of loading one."""
    said = {"waymark_lay_out_adapter": laid_out, "waymark_forget_folders": [{"refused": ""}] * len(laid_out)}
    rpc = {"collective_rpc": lambda body: (200, {"results": list(said[body["method"]])})}
    return {**RIGHT, **rpc, "v1/load_lora_adapter": loaded, "v1/unload_lora_adapter": (200, {})}


def forgotten(server: Told) -> list[list[str]]:
    told_workers = [body for path, body in server.heard if path == "/collective_rpc"]
    return [body["args"][0] for body in told_workers if body["method"] == "waymark_forget_folders"]


LAID_OUT = [{"refused": "", "folder": f"/tmp/waymark-adapter-{worker}"} for worker in range(2)]


@pytest.mark.parametrize(
    ("loaded", "second", "error", "says"),
    [
        ((200, {}), LAID_OUT[1], None, ""),
        ((500, b"CUDA out of memory"), LAID_OUT[1], ServerUnreachable, "CUDA out of memory"),
        (None, LAID_OUT[1], ServerUnreachable, "does not answer"),
        ((200, {}), {"refused": "cannot read it", "folder": ""}, WeightsRejected, "cannot read it"),
    ],
)
async def test_laid_out_adapters_are_forgotten_however_loading_ends(
    loaded: Any, second: dict[str, str], error: type[Exception] | None, says: str
) -> None:
    answers = with_adapters(loaded, LAID_OUT[0], second)
    async with asyncio.timeout(30), told(**answers) as server, VllmApi(server.url, "", adapters=True) as api:
        if error is None:
            assert (await api.take_weights(WEIGHTS, drain_timeout_s=5)).version == 7
        else:
            with pytest.raises(error, match=says):
                await api.take_weights(WEIGHTS, drain_timeout_s=5)
    assert forgotten(server) == [[one["folder"] for one in (LAID_OUT[0], second) if one["folder"]]]


async def test_a_load_that_is_given_up_is_forgotten_too_and_so_is_a_worker_that_does_not_forget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api_module, "_FORGET_S", 0.2)
    stands_still = asyncio.Event()
    right = with_adapters((200, {}), LAID_OUT[0])
    async with asyncio.timeout(30), told(**right) as server, VllmApi(server.url, "", adapters=True) as api:

        async def send(method: str, path: str, **content: Any) -> Any:
            if path == "/v1/load_lora_adapter":
                await stands_still.wait()
            return await VllmApi._send(api, method, path, **content)

        def forgets_nothing(body: Any) -> Any:
            return (500, b"no") if body["method"] == "waymark_forget_folders" else right["collective_rpc"](body)

        monkeypatch.setattr(api, "_send", send)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await api.take_weights(WEIGHTS, drain_timeout_s=5)
        assert forgotten(server) == [[LAID_OUT[0]["folder"]]]
        stands_still.set()
        server.answers["/collective_rpc"] = forgets_nothing
        assert (await api.take_weights(WEIGHTS, drain_timeout_s=5)).version == 7


async def test_a_server_that_refuses_weights_goes_on_with_its_own() -> None:
    refusing = {**RIGHT, "collective_rpc": (200, {"results": [{"refused": ""}, {"refused": "torn"}]})}
    async with told(**refusing) as server, VllmApi(server.url, "") as api:
        with pytest.raises(WeightsRejected, match="torn"):
            await api.take_weights(WEIGHTS, drain_timeout_s=5)
    paths = [path for path, _ in server.heard]
    assert "/resume" in paths
    assert "/update_weight_version" not in paths


async def test_replies_that_do_not_end_are_broken_off_after_the_drain_limit() -> None:
    async with told(pause_s=0.3, **RIGHT) as server, VllmApi(server.url, "") as api:
        await api.take_weights(WEIGHTS, drain_timeout_s=0.1)
    assert [path for path, _ in server.heard][:2] == ["/pause?mode=wait", "/pause?mode=abort"]


async def test_an_endpoint_gives_up_in_time_and_looks_for_the_server_again() -> None:
    async with told(pause_s=20, generate=(200, reply())) as server:
        endpoint = VllmEndpoint("a", server.url, token="", stop_ids=(9,), seeds=False, in_flight=4)
        async with asyncio.timeout(10):
            with pytest.raises(ServerUnreachable, match=r"did not answer within 0\.2 s"):
                await endpoint.complete([1], GREEDY, 0.2)
        server.pause_s = 0
        assert (await endpoint.complete([1], GREEDY, 10)).action_ids == (5, 6)


async def test_an_endpoint_follows_an_actor_that_comes_back_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    async with told(generate=(200, reply())) as one, told(generate=(200, reply())) as two, asyncio.timeout(30):
        places = iter([one.url, one.url, two.url])

        async def asked(*_: object) -> str:
            return next(places)

        monkeypatch.setattr("policy.vllm.client.named_actor", lambda _: Mock())
        monkeypatch.setattr("policy.vllm.client.ask_actor", asked)
        endpoint = VllmEndpoint("a", "actor-a", token="", stop_ids=(9,), seeds=False, in_flight=4)
        assert (await endpoint.complete([1], GREEDY, 10)).action_ids == (5, 6)
        first = endpoint._api
        for _ in range(2):  # it answers wrongly once where it was, and has moved after the second time
            one.answers["/inference/v1/generate"] = (500, b"gone")
            with pytest.raises(ServerUnreachable):
                await endpoint.complete([1], GREEDY, 10)
        assert endpoint._api is first, "an address that stays keeps its connections"
        assert (await endpoint.complete([1], GREEDY, 10)).action_ids == (5, 6)
        assert len(two.heard) == 1
        assert first is not None
        with pytest.raises(ServerUnreachable, match="no longer where the server is"):
            await first.served()
        assert next(places, None) is None


async def test_an_episode_stays_with_one_server_and_moves_when_that_is_away() -> None:
    settings = PolicySettings(attempt_timeout_s=5, deadline_s=20)
    async with told(generate=(200, reply())) as one, told(generate=(200, reply())) as two:
        client = vllm_client({"a": one.url, "b": two.url}, settings, token="", stop_ids=(9,), seeds=False, in_flight=4)
        for _ in range(3):
            await client.complete([1], GREEDY, episode="e")
    assert sorted([len(one.heard), len(two.heard)]) == [0, 3]


async def test_a_server_that_never_answers_fails_the_episode_within_the_deadline() -> None:
    settings = PolicySettings(attempt_timeout_s=0.2, deadline_s=1.0)
    async with told(generate=None) as server, asyncio.timeout(30):
        client = vllm_client({"a": server.url}, settings, token="", stop_ids=(9,), seeds=False, in_flight=4)
        with pytest.raises(EpisodeFailed) as failed:
            await client.complete([1], GREEDY, episode="e")
    assert failed.value.failure.code.name == "deadline"


async def test_no_more_requests_are_under_way_than_a_server_may_be_asked_at_once() -> None:
    async with told(pause_s=0.1, generate=(200, reply())) as server:
        endpoint = VllmEndpoint("a", server.url, token="", stop_ids=(9,), seeds=False, in_flight=2)
        asked = [asyncio.create_task(endpoint.complete([1], GREEDY, 10)) for _ in range(6)]
        while not all(task.done() for task in asked):
            assert server.under_way <= 2
            await asyncio.sleep(0.01)
        assert [task.result().action_ids for task in asked] == [(5, 6)] * 6
    assert server.most_under_way == 2


async def test_a_request_that_finds_no_room_says_so_in_time_and_leaves_the_place_to_others() -> None:
    async with told(pause_s=20, generate=(200, reply())) as server, asyncio.timeout(10):
        endpoint = VllmEndpoint("a", server.url, token="", stop_ids=(9,), seeds=False, in_flight=1)
        holds = asyncio.create_task(endpoint.complete([1], GREEDY, 0.6))
        await asyncio.sleep(0.1)
        with pytest.raises(ServerUnreachable, match=r"had no room for a further request within 0\.2 s"):
            await endpoint.complete([1], GREEDY, 0.2)
        with pytest.raises(ServerUnreachable, match="did not answer"):
            await holds
        server.pause_s = 0
        assert (await endpoint.complete([1], GREEDY, 5)).action_ids == (5, 6)
    assert len(server.heard) == 2


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_that_is_full_is_asked_again_within_the_deadline(status: int) -> None:
    full = iter([(status, b"full"), (status, b"full")])
    async with told(generate=lambda _: next(full, (200, reply()))) as server, asyncio.timeout(30):
        settings = PolicySettings(attempt_timeout_s=5, deadline_s=20)
        client = vllm_client({"a": server.url}, settings, token="", stop_ids=(9,), seeds=False, in_flight=4)
        assert (await client.complete([1], GREEDY, episode="e")).action_ids == (5, 6)
    assert len(server.heard) == 3
