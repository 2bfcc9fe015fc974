"""Spreading a model over the ranks of a group (FSDP2).

Owns what is one unit: each decoder layer, and the rest of the model with its root. Invariants: a model is spread once,
after every copy that is made of it; between forward and backward passes each rank holds its rows alone, so that
whatever reads or writes parameters then finds them spread.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import PreTrainedModel

from learner.ranks import Ranks


def spread(module: nn.Module, ranks: Ranks, precision: str) -> None:
    """Spread the parameters of ``module`` over the ranks, in place; forward passes then go through its own ``forward``.

    With ``precision`` ``bfloat16`` layers compute with bf16 copies, gradients are added up in fp32, and the parameters
    that an optimiser sees stay fp32.
    """
    mesh = init_device_mesh(ranks.device.type, (ranks.size,))
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    policy = half if precision == "bfloat16" else MixedPrecisionPolicy()
    for layer in decoder_layers(module):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(module, mesh=mesh, mp_policy=policy, reshard_after_forward=True)


def decoder_layers(module: nn.Module) -> list[nn.Module]:
    """Return the layers of the language model in ``module``: what its architecture says is never split."""
    names = {
        name for part in module.modules() if isinstance(part, PreTrainedModel) for name in part._no_split_modules or ()
    }
    return [part for part in module.modules() if type(part).__name__ in names]
