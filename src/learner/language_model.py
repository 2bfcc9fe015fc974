"""A causal language model as the learner runs it.

Owns the one door to the actor: every pass enters by the module's own forward, where a model that is spread over
several processes gathers its weights. Owns also how a backbone reads a packed row, and what it keeps of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from learner.attention import attend_by_segments
from learner.batching import Batch
from learner.norms import replace_norms

Read = TypeVar("Read", Tensor, tuple[Tensor, Tensor])


class LanguageModel(nn.Module):
    """``model``, in evaluation mode, over packed rows."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        replace_norms(model)
        self.model = attend_by_segments(model)

    def forward(self, read: Callable[[PreTrainedModel, Batch], Read], batch: Batch) -> Read:
        """Return what ``read`` makes of the model and ``batch``."""
        return read(self.model, batch)

    @property
    def kept(self) -> nn.Module:
        """What of it is trained, and in a checkpoint."""
        return self.model

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.model.device


def hidden_states(backbone: nn.Module, batch: Batch) -> Tensor:
    """Return the last hidden states (N, width) of the batch's row."""
    output = backbone(
        input_ids=batch.input_ids, position_ids=batch.position_ids, segments=batch.segments, use_cache=False
    )
    states: Tensor = output.last_hidden_state.squeeze(0)
    return states


def compute_again(model: PreTrainedModel) -> None:
    """Let the model's layers keep their inputs alone, and compute the rest again for the gradient.

    The layers themselves are told that they train, which is all that transformers asks; what lies in them stays in
    evaluation mode.

    Raises:
        ValueError: the architecture's layers cannot do that.
    """
    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    if not layers:
        raise ValueError(f"{type(model).__name__} knows no activation checkpointing: set learner.recompute to false")
    model.gradient_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": False})
    for layer in layers:
        layer.training = True
