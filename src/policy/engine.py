"""Generate replies for many requests at once, on torch and transformers alone.

Owns ``GenerationEngine``: continuous batching, where a request joins between two tokens of the
others and leaves as soon as it stops, and a prompt that begins as an earlier one did is read from where it differs.
Invariants: a reply's ids and log-probabilities depend on its own request (up to the rounding of a batched matrix
product, or of a prompt read in two parts; exactly with ``batch_invariant``); keys and values of other weights are never
used; log-probabilities come from raw logits; every submitted request finishes or is cancelled. Not thread-safe: one
owner calls it. Imports no ray.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from transformers import PreTrainedModel

from policy.client import RequestRefused, Sampling
from policy.sampling import Sampler, choose
from policy.slot_model import SlotModel
from policy.weights import Contents, put_weights


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """``prompt_ids`` (P,) to continue under ``sampling``; ``request_id`` names it to its sender."""

    request_id: int
    prompt_ids: Sequence[int]
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """``action_ids`` (A,) with the stop id if one was produced, ``logprobs`` (A,), reason ``stop`` or ``length``."""

    request_id: int
    action_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: str


@dataclass(slots=True)
class _Reply:
    request: GenerationRequest
    sampler: Sampler
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    reason: str | None = None


class GenerationEngine:
    """Serves requests with a causal language model.

    Args:
        model: a Hugging Face causal language model in evaluation mode.
        stop_ids: ids that end a reply.
        max_batch: most replies that run at once.
        max_prefill_tokens: most prompt tokens, padding included, that one step takes in; a single
            longer prompt is taken in alone.
        batch_invariant: run one request at a time and read each prompt whole, so that results do not depend on what
            else is asked.
        kept_prompts: how many prompts' keys and values are kept for later prompts that begin alike.
        max_context_tokens: limit of prompt and reply together; the model's own limit where None.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        stop_ids: Sequence[int],
        *,
        max_batch: int = 16,
        max_prefill_tokens: int = 4096,
        batch_invariant: bool = False,
        kept_prompts: int = 8,
        max_context_tokens: int | None = None,
    ) -> None:
        self.model = model
        self.stop_ids = frozenset(stop_ids)
        self.max_batch = 1 if batch_invariant else max_batch
        self.max_prefill_tokens = max_prefill_tokens
        config = model.config.get_text_config(decoder=True)
        own_limit = getattr(config, "max_position_embeddings", None)
        limits = [limit for limit in (own_limit, max_context_tokens) if limit]
        if not limits:
            raise ValueError("the model states no context limit; give max_context_tokens")
        self.max_context_tokens: int = min(limits)
        self.vocab_size: int = config.vocab_size
        self.prompt_tokens = 0
        self.new_tokens = 0
        self._waiting: deque[_Reply] = deque()
        self._running: list[_Reply] = []
        self._slot_model = SlotModel(model, self.max_batch, 0 if batch_invariant else kept_prompts)

    @property
    def cached_tokens(self) -> int:
        """Those of the prompts' tokens that were not read again."""
        return self._slot_model.cached_tokens

    @property
    def waiting(self) -> int:
        """Requests that have not begun."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Requests that have begun and not finished."""
        return len(self._running)

    def submit(self, request: GenerationRequest) -> None:
        """Queue a request.

        Raises:
            RequestRefused: empty prompt, ids outside the vocabulary, settings out of range, or prompt and
                reply longer than the context.
        """
        length, new = len(request.prompt_ids), request.sampling.max_new_tokens
        if not length:
            raise RequestRefused("the prompt is empty")
        if length + new > self.max_context_tokens:
            raise RequestRefused(
                f"the prompt's {length} tokens and {new} new ones exceed the context of {self.max_context_tokens}; "
                "lower max_prompt_tokens or max_new_tokens"
            )
        if min(request.prompt_ids) < 0 or max(request.prompt_ids) >= self.vocab_size:
            raise RequestRefused(f"prompt ids must lie in [0, {self.vocab_size}); is this the model's tokenizer?")
        try:
            sampler = Sampler(request.sampling)
        except ValueError as error:
            raise RequestRefused(str(error)) from error
        self._waiting.append(_Reply(request, sampler))

    def take_weights(self, contents: Contents) -> None:
        """Put weights into the model, and forget what was computed with the former ones.

        Raises:
            WeightsRejected: they do not fit; everything is as it was.
            RuntimeError: a reply is running, which would be of two versions.
        """
        if self._running:
            raise RuntimeError(f"{len(self._running)} replies are running; take weights between replies")
        put_weights(self.model, contents)
        self._slot_model.slots.kept.clear()

    @torch.inference_mode()
    def cancel(self, request_id: int) -> bool:
        """Drop a request wherever it is; return whether it was there."""
        for reply in self._waiting:
            if reply.request.request_id == request_id:
                self._waiting.remove(reply)
                return True
        for row, reply in enumerate(self._running):
            if reply.request.request_id == request_id:
                self._release(row)
                return True
        return False

    @torch.inference_mode()
    def step(self, *, admit: bool = True) -> list[GenerationResult]:
        """Take in waiting requests (if ``admit``), add one token to every running reply, return those that finished."""
        newcomers = self._next_newcomers() if admit else []
        if self._running:
            self._decode()
        if newcomers:
            self._prefill(newcomers)
        finished = [(row, reply) for row, reply in enumerate(self._running) if reply.reason]
        for row, _ in reversed(finished):
            self._release(row)
        return [_result(reply) for _, reply in finished]

    @torch.inference_mode()
    def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the natural-log probabilities (A,) of ``action_ids`` after ``prompt_ids`` at temperature 1."""
        if not prompt_ids or not action_ids:
            raise RequestRefused("a score needs a prompt and an action, both not empty")
        if len(prompt_ids) + len(action_ids) > self.max_context_tokens:
            raise RequestRefused(f"prompt and action exceed the context of {self.max_context_tokens} tokens")
        count = len(action_ids)
        ids = torch.tensor([[*prompt_ids, *action_ids]], device=self.model.device)
        logits = self.model(input_ids=ids[:, :-1], use_cache=False, logits_to_keep=count).logits[0].float()
        logprobs = torch.log_softmax(logits, dim=-1).gather(1, ids[0, -count:, None])[:, 0]
        return [float(value) for value in logprobs]

    def _next_newcomers(self) -> list[_Reply]:
        """Take waiting requests, first come first served, while slots and the prefill limit allow."""
        chosen: list[_Reply] = []
        longest = 0
        while self._waiting and len(self._running) + len(chosen) < self.max_batch:
            longest = max(longest, len(self._waiting[0].request.prompt_ids))
            if chosen and longest * (len(chosen) + 1) > self.max_prefill_tokens:
                break
            chosen.append(self._waiting.popleft())
        return chosen

    def _prefill(self, replies: list[_Reply]) -> None:
        """Read the prompts and choose first tokens."""
        for numbers, logits in self._slot_model.read([reply.request.prompt_ids for reply in replies]):
            begun = [replies[number] for number in numbers]
            self._running += begun
            self._extend(begun, logits)
        self.prompt_tokens += sum(len(reply.request.prompt_ids) for reply in replies)

    def _decode(self) -> None:
        """Choose the next token of every running reply."""
        self._extend(self._running, self._slot_model.decode([reply.ids[-1] for reply in self._running]))

    def _extend(self, replies: list[_Reply], logits: torch.Tensor) -> None:
        tokens, logprobs = choose(logits, [reply.sampler for reply in replies])
        self.new_tokens += len(replies)
        for reply, token, logprob in zip(replies, tokens, logprobs, strict=True):
            reply.ids.append(token)
            reply.logprobs.append(logprob)
            if token in self.stop_ids:
                reply.reason = "stop"
            elif len(reply.ids) == reply.request.sampling.max_new_tokens:
                reply.reason = "length"

    def _release(self, row: int) -> None:
        moved = self._slot_model.slots.release(row)
        last = self._running.pop()
        if moved is not None:
            self._running[row] = last


def _result(reply: _Reply) -> GenerationResult:
    if reply.reason is None:
        raise ValueError("the reply has not finished")
    return GenerationResult(reply.request.request_id, tuple(reply.ids), tuple(reply.logprobs), reply.reason)
