"""The prompt of the WebRL lineage, for its checkpoints.

Owns ``WebRLFormat``: a task line, then one round per action, where a stand-in takes the place of a
past page (the instruction in round 0), then the current page in simplified HTML. Turn marks are
Llama 3's control tokens, by id; a tokenizer without them gets plain role lines. Invariants as in
``policy.formats``: past actions by id, only the page is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policy.formats import PastAction, Prompt, assemble, demonstrated_ids, reply_text
from policy.tokenizer import TextTokenizer

PAST_PAGE = "** Simplified html **"
_TURN_MARKS = ("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>")


@dataclass(frozen=True, slots=True)
class WebRLFormat:
    """Rounds of user and assistant turns; a notice, which the lineage never had, precedes the current page."""

    name: str = "webrl"

    def build(
        self,
        tokenizer: TextTokenizer,
        *,
        intent: str,
        history: Sequence[PastAction],
        observation: str,
        notice: str | None,
        max_prompt_tokens: int,
    ) -> Prompt:
        """Return the prompt for the next action; see ``PromptFormat``."""
        head = [] if tokenizer.bos_id is None else [tokenizer.bos_id]
        head += tokenizer.encode(f"Task Instruction: {intent}\n\n")
        for index, past in enumerate(history):
            head += _turn(tokenizer, f"Round {index}\n\n", "user")
            head += tokenizer.encode(f"{PAST_PAGE if index else intent}\n\n")
            head += _turn(tokenizer, "", "assistant")
            head += _without_stop(tokenizer, past.action_ids)
            head += tokenizer.encode("\n\n")
        head += _turn(tokenizer, f"Round {len(history)}\n\n", "user")
        latest = notice or (history[-1].notice if history else None)
        if latest:
            head += tokenizer.encode(f"Notice: {latest}\n")
        tail = tokenizer.encode("\n\n") + _turn(tokenizer, "", "assistant")
        # The page is one line; it is cut where an element begins.
        return assemble(tokenizer, head, observation, tail, max_prompt_tokens, separator=" <")

    def action_ids(self, tokenizer: TextTokenizer, action_text: str) -> list[int]:
        """Return the ids of a demonstrated action, ended by the stop id."""
        return demonstrated_ids(tokenizer, action_text)

    def action_text(self, tokenizer: TextTokenizer, action_ids: Sequence[int]) -> str:
        """Return what a reply says, without the stop id."""
        return reply_text(tokenizer, action_ids)


def _turn(tokenizer: TextTokenizer, before: str, role: str) -> list[int]:
    """Return ``before`` and the mark that opens a turn of ``role``."""
    marks = [tokenizer.control_id(mark) for mark in _TURN_MARKS]
    if any(mark is None for mark in marks):
        return tokenizer.encode(f"{before}{role}:\n")
    end_of_turn, header_start, header_end = (mark for mark in marks if mark is not None)
    ids = tokenizer.encode(before) if before else []
    return [*ids, end_of_turn, header_start, *tokenizer.encode(role), header_end, *tokenizer.encode("\n")]


def _without_stop(tokenizer: TextTokenizer, action_ids: Sequence[int]) -> list[int]:
    ids = list(action_ids)
    while ids and ids[-1] in tokenizer.stop_ids:
        ids.pop()
    return ids
