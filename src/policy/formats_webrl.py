"""The prompt of the WebRL lineage, for its checkpoints.

Owns ``WebRLFormat``: a task line, then one round per action, where a stand-in takes the place of a
past page (the instruction in round 0), then the current page in simplified HTML. Turn marks are
Llama 3's control tokens, by id; a tokenizer without them gets plain role lines. Invariants as in
``policy.prompts``: past actions by id, only the page is cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from policy.prompts import PastAction, PromptFormat, without_stop
from policy.tokenizer import TextTokenizer

PAST_PAGE = "** Simplified html **"
_TURN_MARKS = ("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>")


class WebRLFormat(PromptFormat):
    """Rounds of user and assistant turns; feedback, which the lineage never had, precedes the current page.

    The page is one line; it is cut where an element begins.
    """

    name: ClassVar[str] = "webrl"
    separator: ClassVar[str] = " <"
    framed: ClassVar[re.Pattern[str]] = re.compile(
        r"^(?=[^\S\n]*((task instruction|notice|user|assistant|system)[^\S\n]*:|round[^\S\n]+\d|"
        r"\*\*[^\S\n]*simplified))",
        re.IGNORECASE | re.MULTILINE,
    )

    def before_page(
        self, tokenizer: TextTokenizer, intent: str, history: Sequence[PastAction], feedback: str | None
    ) -> list[int]:
        """Return the ids of the task line, of each round, and of the current round's opening."""
        ids = tokenizer.encode(f"Task Instruction: {intent}\n\n")
        for index, past in enumerate(history):
            ids += _turn(tokenizer, f"Round {index}\n\n", "user")
            ids += tokenizer.encode(f"{PAST_PAGE if index else intent}\n\n")
            ids += _turn(tokenizer, "", "assistant")
            ids += without_stop(tokenizer, past.action_ids)
            ids += tokenizer.encode("\n\n")
        ids += _turn(tokenizer, f"Round {len(history)}\n\n", "user")
        return ids if not feedback else [*ids, *tokenizer.encode(f"Notice: {' '.join(feedback.split())}\n")]

    def after_page(self, tokenizer: TextTokenizer) -> list[int]:
        """Return the ids that open the assistant's turn."""
        return tokenizer.encode("\n\n") + _turn(tokenizer, "", "assistant")

    def action_ids(self, tokenizer: TextTokenizer, action_text: str) -> list[int]:
        """Return the ids of an action that did not come from the policy; it ends as a turn does, where that stops."""
        end = tokenizer.control_id(_TURN_MARKS[0])
        if end not in tokenizer.stop_ids:
            return super().action_ids(tokenizer, action_text)
        return [*tokenizer.encode(action_text), end]


def _turn(tokenizer: TextTokenizer, before: str, role: str) -> list[int]:
    """Return ``before`` and the mark that opens a turn of ``role``."""
    marks = [tokenizer.control_id(mark) for mark in _TURN_MARKS]
    if any(mark is None for mark in marks):
        return tokenizer.encode(f"{before}{role}:\n")
    end_of_turn, header_start, header_end = (mark for mark in marks if mark is not None)
    ids = tokenizer.encode(before) if before else []
    return [*ids, end_of_turn, header_start, *tokenizer.encode(role), header_end, *tokenizer.encode("\n")]
