"""A policy that says what it is told to, for tests of everything that asks a policy.

Owns ``ScriptedPolicy``. It keeps the client's contract (ids in, ids out, ``EpisodeFailed`` when it
fails) and records what it was asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from policy.client import Completion, Sampling
from policy.prompts import PromptFormat
from policy.tokenizer import TextTokenizer
from records.failures import EpisodeFailed, Failure

Respond = Callable[[str, str, int], str | Failure]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came in."""

    episode: str
    turn: int
    prompt_ids: tuple[int, ...]
    sampling: Sampling


@dataclass
class ScriptedPolicy:
    """Answers with ``respond(prompt_text, episode, turn)``: an action's text, or a failure to raise.

    ``turn`` counts an episode's requests from 0. Every token gets the log-probability ``logprob``;
    ``delay_s`` is waited before each answer.
    """

    tokenizer: TextTokenizer
    prompt_format: PromptFormat
    respond: Respond
    version: int = 0
    logprob: float = -0.1
    delay_s: float = 0.0
    asked: list[Asked] = field(default_factory=list)

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling, *, episode: str) -> Completion:
        """Return the scripted action's ids, cut at ``sampling.max_new_tokens``."""
        turn = sum(1 for request in self.asked if request.episode == episode)
        self.asked.append(Asked(episode, turn, tuple(int(i) for i in prompt_ids), sampling))
        await asyncio.sleep(self.delay_s)
        answer = self.respond(self.tokenizer.decode([int(i) for i in prompt_ids]), episode, turn)
        if isinstance(answer, Failure):
            raise EpisodeFailed(answer)
        ids = self.prompt_format.action_ids(self.tokenizer, answer)
        kept = ids[: sampling.max_new_tokens]
        reason = "stop" if len(kept) == len(ids) else "length"
        return Completion(tuple(kept), (self.logprob,) * len(kept), self.version, reason)
