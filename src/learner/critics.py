"""The critics: a language-model backbone, an MLP head and a sigmoid at the prompt's last token.

Owns the model of V(s, I) (MiRA eq. 4) and P(s, g) (eq. 3). A critic starts from the cloned actor's backbone
with a fresh head whose output layer is zero, so that an untrained critic says the same everywhere, 0.5, and a potential
that is the same everywhere shapes nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from learner.batching import Batch, Sample, collate, micro_batches
from learner.language_model import LanguageModel, hidden_states
from learner.optimiser import Compute
from learner.pieces import Piece
from learner.sharding import copy_weights, put_rows
from policy.weights import own_tensors
from records.episodes import FloatArray

_NEVER_CERTAIN = 0.01
"""Fixed: how far from 0 and 1 a critic's first answer stays, which it could hardly leave otherwise."""


class Critic(nn.Module):
    """Maps a batch of prompts to logits; the sigmoid of a logit is the critic's answer in [0, 1]."""

    def __init__(self, backbone: nn.Module, width: int, seed: int) -> None:
        super().__init__()
        self.backbone = backbone
        self._width = width
        self.head = _fresh_head(width, seed)

    @classmethod
    def from_actor(cls, actor: LanguageModel, seed: int) -> Critic:
        """Return a critic on a copy of the actor's backbone, on the actor's device."""
        width = int(actor.model.get_output_embeddings().weight.shape[1])
        critic = cls(copy.deepcopy(actor.model.base_model), width, seed).to(actor.device)
        critic.requires_grad_(True)
        critic.head.eval()  # not the backbone, whose layers may have been told to compute activations again
        return critic

    @torch.no_grad()
    def start_again(self, actor: LanguageModel, seed: int) -> None:
        """Take the actor's backbone as it is now, and a fresh head, as ``from_actor`` does."""
        copy_weights(actor.model.base_model, self.backbone)
        fresh = _fresh_head(self._width, seed).state_dict()
        for name, tensor in own_tensors(self.head).items():
            put_rows(tensor, fresh[name])

    @torch.no_grad()
    def begin_at(self, answer: float) -> None:
        """Answer ``answer`` everywhere where nothing was learned yet; elsewhere do nothing."""
        head = own_tensors(self.head)
        if not Piece.of(head["2.weight"]).local.any():
            put_rows(head["2.bias"], torch.logit(torch.tensor([answer]), eps=_NEVER_CERTAIN))

    def forward(self, batch: Batch) -> Tensor:
        """Return logits (B,) in float32, read at the last prompt token."""
        states = hidden_states(self.backbone, batch)[batch.last_prompt]
        logits: Tensor = self.head(states.to(next(self.head.parameters()).dtype)).squeeze(-1)
        return logits.float()


def _fresh_head(width: int, seed: int) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        hidden, out = nn.Linear(width, width), nn.Linear(width, 1)
    nn.init.zeros_(out.weight)
    nn.init.zeros_(out.bias)
    return nn.Sequential(hidden, nn.GELU(), out)


def predict(critics: Sequence[Critic], samples: Sequence[Sample], compute: Compute) -> list[FloatArray]:
    """Return each critic's answers (N,) in [0, 1] for the samples' prompts, without gradient.

    All critics are asked about one batch before the next: what they share of it is computed once.
    """
    answers = [np.zeros(len(samples), dtype=np.float32) for _ in critics]
    with torch.no_grad(), compute.autocast():
        for group, counts in compute.ranks.shard(micro_batches(samples, compute.max_tokens) if critics else ()):
            batch = collate([samples[i] for i in group], compute.device)
            for critic, own in zip(critics, answers, strict=True):
                found = torch.sigmoid(critic(batch))
                if counts:
                    own[group] = found.cpu().numpy()
            compute.meter.sign()
    return [compute.ranks.all_reduce_sum(own) for own in answers]
