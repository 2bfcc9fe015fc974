"""Root-mean-square norms in few passes over memory.

Owns ``RmsNorm``, which takes the place of an architecture's own in the learner's models: written out, a norm passes a
dozen times over its states, which costs as much as the matrix products of a small model. Invariants: names and values
of parameters stay; a norm is replaced only where it gives what the architecture's own gives.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers.modeling_layers import GradientCheckpointingLayer

_ROUNDINGS = 64
"""Within how many of its type's smallest relative steps a norm must agree."""


class _Scaled(torch.autograd.Function):
    """x / sqrt(mean(x^2) + eps) * scale over the last dimension, in float32."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, scale: Tensor, eps: float) -> Tensor:
        size = torch.linalg.vector_norm(states, dim=-1, keepdim=True)
        inverse = torch.rsqrt(size.square_().div_(states.shape[-1]).add_(eps))
        ctx.save_for_backward(states, scale, inverse)
        return (states * inverse).mul_(scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        states, scale, inverse = ctx.saved_tensors
        width, wanted = states.shape[-1], [True, ctx.needs_input_grad[1], False]
        # A layer norm about 0 has the same gradient, but for what it takes off since its mean would move.
        of_states, of_scale, _ = torch.ops.aten.native_layer_norm_backward(
            grad, states, [width], torch.zeros_like(inverse), inverse, scale, None, wanted
        )
        moved = (grad @ scale).div_(width).unsqueeze(-1).mul_(inverse)
        return of_states.add_(moved), of_scale, None


class RmsNorm(nn.Module):
    """``weight`` scales the normed states as it is, or (``about_one``, as in Gemma) 1 + ``weight`` does.

    ``in_layer``: under autocast the states are of its type, to which the linear layers that follow would convert them,
    each for itself. What follows the last norm is not: the output layer reads it in float32.
    """

    def __init__(self, weight: nn.Parameter, eps: float, about_one: bool, in_layer: bool) -> None:
        super().__init__()
        self.weight, self.eps, self.about_one, self.in_layer = weight, eps, about_one, in_layer

    def forward(self, states: Tensor) -> Tensor:
        """Return the normed states, computed in float32, of the type that the architecture's own would have."""
        scale = self.weight.float() + 1.0 if self.about_one else self.weight.float()
        normed: Tensor = _Scaled.apply(states.float(), scale, self.eps)
        if self.in_layer and torch.is_autocast_enabled(states.device.type):
            return normed.to(torch.get_autocast_dtype(states.device.type))
        return normed.to(states.dtype if self.about_one else torch.promote_types(states.dtype, self.weight.dtype))


def replace_norms(model: nn.Module) -> int:
    """Put an ``RmsNorm`` in the place of each norm of ``model`` that computes the same; return how many."""
    replaced = 0
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if (found := _as_ours(child, isinstance(parent, GradientCheckpointingLayer))) is not None:
                setattr(parent, name, found)
                replaced += 1
    return replaced


@torch.no_grad()
def _as_ours(norm: nn.Module, in_layer: bool) -> RmsNorm | None:
    """Return what computes the same as ``norm``, if it is a root-mean-square norm of a form known here."""
    weight = getattr(norm, "weight", None)
    eps = getattr(norm, "eps", getattr(norm, "variance_epsilon", None))
    if not (type(norm).__name__.endswith("RMSNorm") and isinstance(weight, nn.Parameter) and isinstance(eps, float)):
        return None
    states = torch.linspace(-2.0, 3.0, 3 * len(weight), device=weight.device).view(3, -1).to(weight.dtype)
    expected, near = norm(states), _ROUNDINGS * torch.finfo(weight.dtype).eps
    for about_one in (False, True):
        ours = RmsNorm(weight, eps, about_one, in_layer).train(norm.training)
        if ours(states).dtype == expected.dtype and torch.allclose(ours(states), expected, rtol=near, atol=near):
            return ours
    return None
