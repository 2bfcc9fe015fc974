"""Spreading a model over the ranks of a group (FSDP2).

Owns what is one unit: each decoder layer, and the rest of the model with its root. Invariants: a model is spread once,
after every copy that is made of it; between forward and backward passes each rank holds its rows alone, so that
whatever reads or writes parameters then finds them spread.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import PreTrainedModel

from learner.pieces import Piece
from learner.ranks import Ranks
from policy.published_weights import PublishedWeights
from policy.tensor_files import in_file_order
from policy.vllm.inside.waymark_weights import Views
from policy.weights import own_tensors, write_weights

M = TypeVar("M", bound=nn.Module)


def spread(module: M, ranks: Ranks, precision: str) -> M:
    """Spread the parameters of ``module`` over the ranks, in place, and return it.

    Each rank has it whole, and keeps its own rows, on ``ranks.device``; nothing is sent. Every pass then enters by the
    module's own ``forward``.

    With ``precision`` ``bfloat16`` layers compute with bf16 copies, gradients are added up in fp32, and the parameters
    that an optimiser sees stay fp32.
    """
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    policy = half if precision == "bfloat16" else MixedPrecisionPolicy()
    for layer in decoder_layers(module):
        fully_shard(layer, mesh=ranks.mesh, mp_policy=policy)
    fully_shard(module, mesh=ranks.mesh, mp_policy=policy, reshard_after_forward=True)
    return module


def decoder_layers(module: nn.Module) -> list[nn.Module]:
    """Return the layers of the language model in ``module``: what its architecture says is never split."""
    names = {
        name for part in module.modules() if isinstance(part, PreTrainedModel) for name in part._no_split_modules or ()
    }
    return [part for part in module.modules() if type(part).__name__ in names]


@torch.no_grad()
def copy_weights(source: nn.Module, target: nn.Module) -> None:
    """Copy the weights of ``source`` into ``target``, which is built like it; each rank copies its own rows."""
    into = own_tensors(target)
    for name, tensor in own_tensors(source).items():
        Piece.of(into[name]).local.copy_(Piece.of(tensor).local)


@torch.no_grad()
def put_rows(tensor: Tensor, whole: Tensor) -> None:
    """Copy this rank's rows of ``whole`` into ``tensor``, which may be spread."""
    piece = Piece.of(tensor)
    piece.local.copy_(whole[piece.first : piece.first + len(piece.local)])


def write_together(
    tensors: Mapping[str, Tensor], path: Path, version: int, ranks: Ranks, views: Views | None
) -> PublishedWeights:
    """Write the weights as rank 0's file; each tensor is gathered as its turn comes, so that no two are there whole."""
    if ranks.first:
        written = write_weights(tensors, path, version, ranks.full_tensor, views)
    else:
        for name in in_file_order(tensors):
            ranks.full_tensor(tensors[name])
    return PublishedWeights(version, ranks.all_gather_text(written.checksum if ranks.first else "")[0], str(path))


@torch.no_grad()
def gather_weights(source: nn.Module, target: nn.Module | None, ranks: Ranks) -> None:
    """Gather the weights of the spread ``source`` into rank 0's ``target``, which is built like it."""
    into = own_tensors(target) if target is not None else {}
    for name, tensor in own_tensors(source).items():
        whole = ranks.full_tensor(tensor)
        if into:
            into[name].copy_(whole)
