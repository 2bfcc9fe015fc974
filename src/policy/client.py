"""What a rollout asks of a policy, whoever serves it (the torch server, vLLM, a test's stand-in).

Owns the request and reply types and the ``PolicyClient`` protocol. Invariant: token ids in, token
ids out; nothing on this path ever re-tokenises text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to decode: ``temperature`` 0 is greedy; ``seed`` makes a sampled request repeatable by itself.

    ``version`` is the one of the weights that must answer; None takes whichever are served.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int = 64
    seed: int = 0
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply: ``action_ids`` (A,) include the stop token if one was produced.

    ``logprobs`` (A,) are natural logs under the sampling temperature (under temperature 1 when
    greedy). ``finish_reason`` is ``stop`` or ``length``; ``version`` the weights that answered.
    """

    action_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    version: int
    finish_reason: str


class RequestRefused(ValueError):
    """A request that this model cannot serve, such as a prompt beyond its context; asking again is useless."""


class ServerUnreachable(RuntimeError):
    """A policy server gave no answer; ``for_good`` where it will not come back."""

    def __init__(self, message: str, *, for_good: bool = False) -> None:
        super().__init__(message)
        self.for_good = for_good


class StartFailed(ServerUnreachable):
    """A policy server is not up, for the reason that this names; it is started again.

    ``start`` tells the failed start from others. ``refused`` where what was asked for cannot be served, so that another
    start would fail the same way, unless a server of the same kind has come up before.
    """

    def __init__(self, message: str, *, start: str = "", refused: bool = False) -> None:
        super().__init__(message)
        self.start = start
        self.refused = refused


class WrongVersion(RuntimeError):
    """A server has other weights than those that must answer, and those are not published where it looks."""


class EngineStopped(RuntimeError):
    """A server's engine does not run any more: closed, or failed with the error this names."""


class PolicyClient(Protocol):
    """A policy endpoint. Raises ``records.failures.EpisodeFailed`` (kind policy) when it cannot answer in time."""

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling, *, episode: str) -> Completion:
        """Return one completion; ``episode`` is the id of the one that asks."""
        ...


@dataclass(frozen=True, slots=True)
class PolicySource:
    """Where a worker's policy client comes from.

    ``factory`` is ``module:function``, called in the worker as ``function(**options)`` and returning
    a ``PolicyClient``; ``options`` may hold Ray actor handles.
    """

    factory: str
    options: Mapping[str, Any] = field(default_factory=dict)
