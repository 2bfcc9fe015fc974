"""Generate replies for many requests at once, on torch and transformers alone.

Owns ``GenerationEngine``: continuous batching, where a request joins between two tokens of the
others and leaves as soon as it stops. Invariants: a reply's ids and log-probabilities depend on its
own request (up to the rounding of a batched matrix product; exactly with ``batch_invariant``);
log-probabilities come from raw logits; every submitted request finishes or is cancelled. Not
thread-safe: one owner calls it. Imports no ray.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicCache, DynamicLayer

from policy.client import RequestRefused, Sampling
from policy.kv_slots import KeyValueSlots
from policy.sampling import Sampler, choose


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
        batch_invariant: run one request at a time, so that results do not depend on what else is asked.
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
        self._masks = _DecodeMasks(config)
        self._waiting: deque[_Reply] = deque()
        self._running: list[_Reply] = []
        self._slots = KeyValueSlots(self.max_batch, model.device)

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
        """Run the prompts, padded on the right where causality hides the padding, and choose first tokens."""
        lengths = [len(reply.request.prompt_ids) for reply in replies]
        rows = [
            [*reply.request.prompt_ids, *[0] * (max(lengths) - length)]
            for reply, length in zip(replies, lengths, strict=True)
        ]
        device = self.model.device
        ends = torch.tensor([length - 1 for length in lengths], device=device)
        kept, place = ends.unique(return_inverse=True)
        cache = DynamicCache()
        logits = self.model(
            input_ids=torch.tensor(rows, device=device), past_key_values=cache, use_cache=True, logits_to_keep=kept
        ).logits
        self._slots.admit(_states(cache), lengths)
        self._running += replies
        self.prompt_tokens += sum(lengths)
        self._extend(replies, logits[torch.arange(len(rows), device=device), place])

    def _decode(self) -> None:
        """Feed every running reply's last token back in and choose the next."""
        cache = self._slots.begin_step()
        positions = self._slots.positions
        logits = self.model(
            input_ids=torch.tensor([[reply.ids[-1]] for reply in self._running], device=self.model.device),
            attention_mask=self._masks.build(positions, self._slots.width, self.model.dtype),
            position_ids=positions[:, None],
            past_key_values=cache,
            use_cache=True,
        ).logits
        self._slots.end_step()
        self._extend(self._running, logits[:, -1])

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
        moved = self._slots.release(row)
        last = self._running.pop()
        if moved is not None:
            self._running[row] = last


class _DecodeMasks:
    """Which columns of the slots one new token per row may attend to, in the form the model's layers expect."""

    def __init__(self, config: object) -> None:
        self._window: int | None = getattr(config, "sliding_window", None)
        kinds = set(getattr(config, "layer_types", None) or ())
        unknown = kinds - {"full_attention", "sliding_attention"}
        if unknown:
            raise ValueError(f"the engine serves layers of full or sliding attention, this model has {sorted(unknown)}")
        self._kinds = kinds or {"sliding_attention" if self._window else "full_attention"}
        self._additive = getattr(config, "_attn_implementation", "sdpa") != "sdpa"

    def build(
        self, positions: torch.Tensor, width: int, dtype: torch.dtype
    ) -> torch.Tensor | dict[str, torch.Tensor] | None:
        """Return masks (rows, 1, 1, width) for new tokens at ``positions`` (rows,)."""
        distance = positions[:, None] - torch.arange(width, device=positions.device)
        masks: dict[str, torch.Tensor] = {}
        for kind in self._kinds:
            seen = distance >= 0
            if kind == "sliding_attention" and self._window:
                seen &= distance < self._window
            masks[kind] = self._as_expected(seen[:, None, None], dtype)
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _as_expected(self, seen: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if not self._additive:
            return seen
        hidden = torch.full(seen.shape, torch.finfo(dtype).min, dtype=dtype, device=seen.device)
        return hidden.masked_fill_(seen, 0.0)


def _result(reply: _Reply) -> GenerationResult:
    if reply.reason is None:
        raise ValueError("the reply has not finished")
    return GenerationResult(reply.request.request_id, tuple(reply.ids), tuple(reply.logprobs), reply.reason)


def _states(cache: DynamicCache) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return keys and values per layer; raise where a layer keeps no such state."""
    states: list[tuple[torch.Tensor, torch.Tensor]] = []
    for number, layer in enumerate(cache.layers):
        if not isinstance(layer, DynamicLayer) or layer.keys is None or layer.values is None:
            raise TypeError(f"layer {number} keeps {type(layer).__name__}; the engine serves keys and values only")
        states.append((layer.keys, layer.values))
    return states
