"""What an outcome model reads of a recorded episode: the instruction, the actions in text, the last page, a question.

Owns ``OutcomePrompt``. Invariants: it depends on the record alone, so that training and judging read the same; actions
enter as text, so that a model with another tokenizer than the policy's can read them; where room is short the page's
end goes first, then the earliest actions; nothing that a page says stands in the place of the question. The form is
that of WebRL's outcome model (Qi et al. 2024): one token answers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from policy.formats import WaymarkFormat
from policy.prompts import PastAction, PromptTooLong
from policy.tokenizer import TextTokenizer
from records.episodes import IntArray, Trajectory

YES, NO = "yes", "no"


class _OutcomeFormat(WaymarkFormat):
    """Task, actions, last page, and the question in the place of the cue to act."""

    name: ClassVar[str] = "outcome"
    framed: ClassVar[re.Pattern[str]] = re.compile(
        f"{WaymarkFormat.framed.pattern}|^(?=[^\\S\\n]*solved[^\\S\\n]*\\?)", WaymarkFormat.framed.flags
    )

    def after_page(self, tokenizer: TextTokenizer) -> list[int]:
        """Return the ids of the question."""
        return tokenizer.encode("\nSolved?\n")


_PROBES = (
    "Task: Buy the cheapest lamp\n@ Shop\nThank you for your order\nSolved?\n",
    "Task: Buy the cheapest lamp\n@ Shop\nYour cart is empty\nSolved?\n",
    'Task: Who wrote the oldest post?\nexit(message="nobody")\n@ Forum\nSolved?\n',
)
_REFUSED = "the page refused it"
"""What the prompt says of an action that was not carried out."""


@dataclass(frozen=True, slots=True)
class OutcomePrompt:
    """Prompts of at most ``max_prompt_tokens`` for a model with this tokenizer; ``page`` is whether they show one."""

    tokenizer: TextTokenizer
    max_prompt_tokens: int
    page: bool = True

    def ids(self, episode: Trajectory) -> IntArray:
        """Return the prompt (P,) of an episode.

        Raises:
            PromptTooLong: the instruction alone does not fit.
        """
        encode = self.tokenizer.encode
        history = [PastAction(encode(step.action_text), _REFUSED if step.refused else None) for step in episode.steps]
        state = episode.last_state
        last = state.observation if state is not None and self.page else ""
        while True:
            try:
                return (
                    _OutcomeFormat()
                    .build(
                        self.tokenizer,
                        intent=episode.intent,
                        history=history,
                        observation=last,
                        feedback=None,
                        max_prompt_tokens=self.max_prompt_tokens,
                    )
                    .ids
                )
            except PromptTooLong:
                if not history:
                    raise
                history = history[1:]

    def answers(self) -> tuple[int, int]:
        """Return the tokens that say yes and no; raise ``ValueError`` where one token does not tell them apart."""
        yes, no = self.tokenizer.encode(YES)[0], self.tokenizer.encode(NO)[0]
        if yes == no:
            raise ValueError(
                f"expected a tokenizer whose first tokens of {YES!r} and {NO!r} differ; found one for both"
            )
        return yes, no

    def probes(self) -> tuple[tuple[int, ...], ...]:
        """Return the prompts whose answers tell models apart; they are the same for each model with this tokenizer."""
        return tuple(tuple(self.tokenizer.encode(text)[-self.max_prompt_tokens :]) for text in _PROBES)
