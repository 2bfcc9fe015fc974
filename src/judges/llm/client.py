"""One request to a language model: what comes back, and what can go wrong.

Owns ``Reply``, ``Trouble`` and the protocol ``Client``. Invariant: a client has one reply to a question and never asks
again by itself, but without what the endpoint refuses of a request; who asks again, and when, is
``judges.llm.endpoint``.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from judges.llm.interface import LlmQuestion
from records import failure_codes as codes
from records.failures import FailureCode

THINKING_TOKENS = 8192
"""Room for the thinking of a model that decides itself how long it thinks: more than models do about such questions."""
_LASTING = (400, 401, 402, 403, 404, 405, 410, 413, 415, 422)
_SHOWN = 300


_MOST_TOKENS = 100_000_000
"""Fixed: more than any reply and its question have together."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's text, with the tokens that its provider counted (0 where it counts none); thinking is output.

    ``cut`` says that the model stopped at a limit or a filter, and which. ``blocked`` says what a provider's filter
    kept back, "the prompt" or "the reply"; another request would fare no better.
    """

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    cut: str = ""
    blocked: str = ""

    def __post_init__(self) -> None:
        """Refuse counts that no reply has: they would spend a budget, or fill it up."""
        for counted in (self.input_tokens, self.output_tokens):
            if not _possible(counted):
                raise Trouble(codes.JUDGE_NONSENSE, f"expected the tokens of one reply, found {counted}"[:_SHOWN])


class Trouble(Exception):
    """A request without an answer: a failure's code, what was seen, and how long the endpoint wants to be left alone.

    ``lasting`` trouble does not pass by asking again. ``budget_refused`` says that the model takes no such thinking
    budget; it is to be asked without one. ``spent`` are the tokens of question and reply, where a reply came that is
    no answer: it is paid for too.
    """

    def __init__(
        self,
        code: FailureCode,
        detail: str,
        *,
        pause_s: float = 0.0,
        lasting: bool = False,
        budget_refused: bool = False,
        spent: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(detail)
        self.code, self.detail, self.pause_s, self.lasting = code, detail, pause_s, lasting
        self.budget_refused = budget_refused
        self.input_tokens, self.output_tokens = spent if all(map(_possible, spent)) else (0, 0)


class Client(Protocol):
    """Asks one endpoint."""

    async def complete(self, question: LlmQuestion[Any], timeout_s: float) -> Reply:
        """Send one request; raise ``Trouble`` where there is no reply within ``timeout_s`` seconds."""
        ...

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        ...


def most_output_tokens(question: LlmQuestion[Any]) -> int:
    """Return the room for a question's answer and the thinking before it."""
    thinking = THINKING_TOKENS if question.thinking_tokens is None else question.thinking_tokens
    return question.max_tokens + thinking


def may_think_more(question: LlmQuestion[Any]) -> bool:
    """Whether a question has less room for thinking than a model that decides itself is given."""
    return question.thinking_tokens is not None and question.thinking_tokens < THINKING_TOKENS


def refused(status: int, said: str, pause_s: float, spent: tuple[int, int] = (0, 0)) -> Trouble:
    """Return the trouble of an answer with an HTTP status other than 200; ``said`` holds no key, and is cut here."""
    detail = f"HTTP {status}: {said[:_SHOWN]}"
    if status == 429:
        return Trouble(codes.JUDGE_LIMITED, detail, pause_s=pause_s, spent=spent)
    if status in _LASTING:
        return Trouble(codes.JUDGE_REFUSED, detail, lasting=True, spent=spent)
    return Trouble(codes.JUDGE_UNREACHABLE, detail, pause_s=pause_s, spent=spent)


def retry_after_s(header: str | None, now: float) -> float:
    """Return the seconds that a Retry-After header asks for, 0 where it says nothing; ``now`` is the time of day."""
    if not header:
        return 0.0
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now)
    except ValueError:
        return 0.0


def _possible(counted: int) -> bool:
    return 0 <= counted <= _MOST_TOKENS
