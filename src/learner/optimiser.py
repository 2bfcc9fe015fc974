"""One optimiser update over any number of micro-batches.

Owns AdamW's construction, gradient accumulation and clipping, and the learning-rate schedule. Invariant: the
gradient of an update is that of the sum of the samples' losses divided by one number for the whole batch,
however the batch was split, also over ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from learner.batching import Batch, Indices, Sample, collate, micro_batches
from learner.bookmarks import Bookmarks
from learner.headway import Meter
from learner.ranks import ALONE, Ranks


@dataclass(frozen=True, slots=True)
class Compute:
    """How to run the model: device, arithmetic and the size of a forward pass in tokens.

    ``ranks`` run it together, ``meter`` notes what got done, ``bookmarks`` keep where a training stands.
    """

    device: torch.device
    max_tokens: int
    precision: str = "float32"
    ranks: Ranks = ALONE
    meter: Meter = field(default_factory=Meter)
    bookmarks: Bookmarks = field(default_factory=Bookmarks)

    def autocast(self) -> AbstractContextManager[None]:
        """Return the context of forward passes: ``bfloat16`` where ``precision`` says so."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.precision == "bfloat16")


def adamw(module: nn.Module, learning_rate: float, weight_decay: float) -> torch.optim.AdamW:
    """Return AdamW over the module's trainable parameters."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=weight_decay, fused=True)


def set_learning_rate(optimiser: torch.optim.Optimizer, learning_rate: float) -> None:
    """Use ``learning_rate`` from the next update on."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate


def learning_rate_factor(progress: float, warmup_share: float, decay: str, final_share: float) -> float:
    """Return the share of the peak learning rate at ``progress`` in [0, 1] of a run.

    Linear from 0 to 1 during the warm-up, then from 1 to ``final_share`` by ``decay``: ``cosine``, ``linear`` or
    ``constant``.
    """
    if progress < warmup_share:
        return progress / warmup_share
    along = (progress - warmup_share) / max(1.0 - warmup_share, 1e-12)
    shapes = {"constant": 1.0, "linear": 1.0 - along, "cosine": 0.5 * (1.0 + math.cos(math.pi * along))}
    return final_share + (1.0 - final_share) * shapes[decay]


def update(
    module: nn.Module,
    optimiser: torch.optim.Optimizer,
    samples: Sequence[Sample],
    chosen: Indices,
    loss: Callable[[Batch, Indices], Tensor],
    *,
    divide_by: float,
    max_grad_norm: float,
    compute: Compute,
) -> tuple[float, float]:
    """Make one update on ``samples[chosen]`` and return the batch's loss and its gradient norm before clipping.

    Every rank computes a share of the micro-batches; the update and what is returned are the same on all.

    Args:
        module: whose parameters the optimiser holds.
        optimiser: its gradients are cleared first.
        samples: all samples.
        chosen: indices (n,) of the batch's samples.
        loss: maps a micro-batch and its samples' indices to losses, one per sample.
        divide_by: what the sum of all losses is divided by.
        max_grad_norm: limit of the L2 norm.
        compute: where and in which parts.

    Raises:
        FloatingPointError: the gradient is not finite; the weights are left as they were.
    """
    optimiser.zero_grad(set_to_none=True)
    total = 0.0
    ranks = compute.ranks
    for group, counts in ranks.shard(micro_batches([samples[i] for i in chosen], compute.max_tokens)):
        members = chosen[group]
        batch = collate([samples[i] for i in members], compute.device)
        with compute.autocast():
            part = loss(batch, members).sum() / divide_by
        # A gradient is the mean over ranks, and is to be the sum; what only fills up adds nothing.
        (part * (ranks.size * counts) if ranks.size > 1 else part).backward()
        total += float(part.detach()) * counts
    ranks.share_gradients(module.parameters())
    total = float(ranks.all_reduce_sum(np.asarray([total]))[0])
    norm = float(ranks.full_tensor(nn.utils.clip_grad_norm_(module.parameters(), max_grad_norm)))
    if not math.isfinite(norm):
        raise FloatingPointError(
            f"gradient norm is {norm} at a loss of {total:.4g}: expected a finite number; lower the learning rate, "
            "or raise beta where the loss is weighted by exp(A / beta)"
        )
    optimiser.step()
    return total, norm
