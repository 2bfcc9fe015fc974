"""The scripted policy keeps the client's contract."""

from __future__ import annotations

import pytest

from policy.client import Sampling
from policy.formats import get_format
from policy.scripted import ScriptedPolicy
from policy.tokenizer import TextTokenizer
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure


async def test_it_answers_by_episode_and_turn(tokenizer: TextTokenizer) -> None:
    waymark = get_format("waymark")
    policy = ScriptedPolicy(tokenizer, waymark, lambda text, episode, turn: f'exit(message="{text} {episode} {turn}")')
    prompt = tokenizer.encode("page")
    await policy.complete(prompt, Sampling(), episode="b")
    await policy.complete(prompt, Sampling(), episode="a")
    reply = await policy.complete(prompt, Sampling(), episode="a")
    assert waymark.action_text(tokenizer, reply.action_ids) == 'exit(message="page a 1")'
    assert (reply.finish_reason, len(reply.logprobs)) == ("stop", len(reply.action_ids))
    cut = await policy.complete(prompt, Sampling(max_new_tokens=2), episode="a")
    assert (cut.finish_reason, cut.action_ids) == ("length", reply.action_ids[:2])
    assert [(r.episode, r.turn) for r in policy.asked] == [("b", 0), ("a", 0), ("a", 1), ("a", 2)]


async def test_it_fails_when_told_to(tokenizer: TextTokenizer) -> None:
    failure = Failure(codes.DEADLINE)
    policy = ScriptedPolicy(tokenizer, get_format("waymark"), lambda *_: failure)
    with pytest.raises(EpisodeFailed) as caught:
        await policy.complete([1], Sampling(), episode="a")
    assert caught.value.failure is failure
