"""What every prompt format shares: from a task, its past actions and the current page to prompt ids, and back.

Owns ``PromptFormat`` and how much of a page fits. Invariants: past actions enter by the ids the policy produced,
never as text; only the observation is ever cut, at a line's end (``webrl``: before an element), and the number of
tokens left out is reported; a prompt never exceeds its limit; nothing that a page says stands in a prompt as its
task, history, feedback or cue.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from policy.tokenizer import TextTokenizer
from records.episodes import IntArray


@dataclass(frozen=True, slots=True)
class PastAction:
    """An earlier action: the ids the policy produced, and what the agent was told about it, if anything."""

    action_ids: Sequence[int]
    feedback: str | None = None


@dataclass(frozen=True, slots=True)
class MilestoneMark:
    """One of the task's milestones, and whether it is reached in the state that the prompt shows."""

    description: str
    reached: bool


@dataclass(frozen=True, slots=True)
class Prompt:
    """``ids`` (P,) int32, and how many tokens of the observation were left out."""

    ids: IntArray
    truncated_tokens: int


class PromptTooLong(ValueError):
    """The part of a prompt that may not be cut does not fit its limit."""


_NONCHARACTERS = re.compile("[\ufdd0-\ufdef]")
"""What is no character in any text; a tokenizer may use them as signs of its own, as ours glues with one."""


class PromptFormat(ABC):
    """How a policy family reads its state and writes its actions.

    A format says what stands before the page and what after it; how much of the page fits between them, and how
    an action becomes ids and text again, is the same for all.
    """

    name: ClassVar[str]
    """The name it is chosen by in a recipe."""
    separator: ClassVar[str] = "\n"
    """Where a page that does not fit may be cut."""
    framed: ClassVar[re.Pattern[str]]
    """Matches (with no characters) where a line begins as something else than a page."""
    thinking: bool = False
    """Whether a reply is a thought and an action, so that one may hold no action that could be read."""

    def begin(self, tokenizer: TextTokenizer) -> list[int]:
        """Return the ids that open every prompt."""
        return [] if tokenizer.bos_id is None else [tokenizer.bos_id]

    @abstractmethod
    def before_page(
        self, tokenizer: TextTokenizer, intent: str, history: Sequence[PastAction], feedback: str | None
    ) -> list[int]:
        """Return the ids of task, earlier actions and ``feedback``, the last thing that the agent was told."""

    @abstractmethod
    def after_page(self, tokenizer: TextTokenizer) -> list[int]:
        """Return the ids of the cue to act."""

    def milestone_state(self, tokenizer: TextTokenizer, milestones: Sequence[MilestoneMark]) -> list[int]:
        """Return the ids of the milestone state, before the cue; none in a format that does not show it."""
        return []

    def as_page(self, observation: str) -> str:
        """Return the observation with a mark before each line that begins as another part of the prompt does."""
        return self.framed.sub("> ", _NONCHARACTERS.sub("\ufffd", observation))

    def build(
        self,
        tokenizer: TextTokenizer,
        *,
        intent: str,
        history: Sequence[PastAction],
        observation: str,
        feedback: str | None,
        max_prompt_tokens: int,
        milestones: Sequence[MilestoneMark] = (),
    ) -> Prompt:
        """Return the prompt for the next action, with as much of ``observation`` as fits.

        Raises:
            PromptTooLong: what may not be cut exceeds ``max_prompt_tokens``.
        """
        head = self.begin(tokenizer)
        head += self.before_page(tokenizer, intent, history, feedback or (history[-1].feedback if history else None))
        tail = [*self.milestone_state(tokenizer, milestones), *self.after_page(tokenizer)]
        room = max_prompt_tokens - len(head) - len(tail)
        if room < 0:
            raise PromptTooLong(
                f"instruction, earlier actions and cue take {len(head) + len(tail)} tokens, "
                f"the limit is {max_prompt_tokens}; raise max_prompt_tokens or lower the task's step limit"
            )
        page, truncated_tokens = _fit(tokenizer, self.as_page(observation.rstrip("\n")), room, self.separator)
        return Prompt(np.asarray([*head, *page, *tail], dtype=np.int32), truncated_tokens)

    def action_ids(self, tokenizer: TextTokenizer, action_text: str) -> list[int]:
        """Return the ids of an action that did not come from the policy (a demonstration), with the stop id."""
        return [*tokenizer.encode(action_text), tokenizer.stop_ids[0]]

    def response_ids(self, tokenizer: TextTokenizer, response: str) -> list[int]:
        """Return the ids of what another agent said in one turn (imported data), with the stop id."""
        return self.action_ids(tokenizer, response)

    def action_text(self, tokenizer: TextTokenizer, action_ids: Sequence[int]) -> str:
        """Return what a reply says, without the stop id.

        Raises:
            ReplyError: the format has replies think, and this one is not a thought and an answer.
        """
        return tokenizer.decode(without_stop(tokenizer, action_ids))


def without_stop(tokenizer: TextTokenizer, action_ids: Sequence[int]) -> list[int]:
    """Return a reply's ids up to its stop id."""
    ids = [int(i) for i in action_ids]
    while ids and ids[-1] in tokenizer.stop_ids:
        ids.pop()
    return ids


def _fit(tokenizer: TextTokenizer, text: str, room: int, separator: str) -> tuple[list[int], int]:
    """Return the ids of the most leading whole lines of ``text`` within ``room`` tokens, and how many were left out.

    Lines are what ``separator`` separates.
    """
    whole = tokenizer.encode(text)
    if len(whole) <= room:
        return whole, 0
    lines = text.split(separator)
    best: list[int] = []
    fits, fails = 0, len(lines)
    while fails - fits > 1:
        count = (fits + fails) // 2
        ids = tokenizer.encode(separator.join(lines[:count]))
        if len(ids) <= room:
            fits, best = count, ids
        else:
            fails = count
    return best, len(whole) - len(best)
