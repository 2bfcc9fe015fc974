"""Weights on their way from the learner to the servers: a safetensors file with version and checksum.

Owns writing, verified reading, and putting weights into a model. A file holds a whole model's tensors, or an adapter's
with its shape in the file's header. Invariants: a file appears whole or not at all; what is loaded is what was hashed;
a model takes all tensors or none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from transformers import PreTrainedModel

from policy.adapters import Adapter, AdapterShape, check_adapter, put_adapter
from policy.published_weights import PublishedWeights, TransferBroken, WeightsRejected
from policy.tensor_files import write_tensors
from policy.vllm.inside.waymark_broadcast import BrokenOff, Invitation, is_invitation, receive
from policy.vllm.inside.waymark_weights import VIEWS, Views, views_to_text
from records.durable import file_replacing, open_file

Tensors = dict[str, torch.Tensor]
Contents = Tensors | Adapter
"""What a file of weights holds: a whole model's tensors by name, or an adapter."""
_SHAPE = "adapter"
"""Where an adapter's shape is in a file's header; the servers of vLLM look there too (``waymark_worker``)."""


def own_tensors(module: torch.nn.Module) -> Tensors:
    """Return the module's parameters and stored buffers by name, tied ones once, under their first name.

    Tied ones are one object under two names. (An address would not tell: that of a tensor spread over processes is 0.)
    """
    own = module.state_dict(keep_vars=True)
    first = {id(tensor): name for name, tensor in reversed(own.items())}
    return {name: tensor.detach() for name, tensor in own.items() if first[id(tensor)] == name}


def write_weights(
    tensors: Mapping[str, torch.Tensor],
    path: str | Path,
    version: int,
    whole: Callable[[torch.Tensor], torch.Tensor] = lambda tensor: tensor,
    views: Views | None = None,
) -> PublishedWeights:
    """Write ``tensors`` to the file ``path`` durably and return what names it.

    Names that share memory (tied embeddings) are stored once, under the first of them. ``whole`` is that of
    ``policy.tensor_files.write_tensors``. ``views`` tells servers of vLLM what the model's own files call them
    (``policy.checkpoint_names``); without it, the same.
    """
    stored: Tensors = {}
    seen: set[tuple[int, torch.Size]] = set()
    for name, tensor in tensors.items():
        place = (tensor.data_ptr() or id(tensor), tensor.shape)
        if tensor.numel() and place in seen:
            continue
        seen.add(place)
        stored[name] = tensor
    return _write(stored, path, version, {VIEWS: views_to_text(views)} if views else {}, whole)


def write_adapter(adapter: Adapter, path: str | Path, version: int) -> PublishedWeights:
    """Write ``adapter`` to the file ``path`` durably and return what names it."""
    return _write(adapter.tensors, path, version, {_SHAPE: adapter.shape.to_json()})


def _write(
    tensors: Mapping[str, torch.Tensor],
    path: str | Path,
    version: int,
    metadata: Mapping[str, str],
    whole: Callable[[torch.Tensor], torch.Tensor] = lambda tensor: tensor,
) -> PublishedWeights:
    target = Path(path)
    with file_replacing(target) as file:
        checksum = write_tensors(file, tensors, {"version": str(version), **metadata}, whole)
    return PublishedWeights(version, checksum, str(target))


def read_weights(weights: PublishedWeights, device: torch.device | str = "cpu") -> Contents:
    """Return what published weights consist of; they come by way of ``device`` where they are sent between GPUs.

    Raises:
        WeightsRejected: the file is missing or unreadable, or its checksum is another one.
        TransferBroken: they were sent by broadcast, and not to their end.
    """
    content = _bytes_of(weights, torch.device(device))
    found = hashlib.sha256(content).hexdigest()
    if found != weights.checksum:
        raise WeightsRejected(
            f"weights of version {weights.version} at {weights.path}: expected checksum {weights.checksum[:12]}…, "
            f"found {found[:12]}…; publish them again"
        )
    try:
        tensors: Tensors = load(content)
    except SafetensorError as error:
        raise WeightsRejected(f"{weights.path} is not a safetensors file: {error}") from error
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    shape = (header.get("__metadata__") or {}).get(_SHAPE)
    return tensors if shape is None else Adapter(AdapterShape.from_json(shape), tensors)


def _bytes_of(weights: PublishedWeights, device: torch.device) -> bytes:
    try:
        if is_invitation(weights.path):
            invitation = Invitation.read(weights.path)
            return receive(invitation, device if invitation.backend == "nccl" else torch.device("cpu"))
        with open_file(Path(weights.path)) as file:
            return file.read()
    except (OSError, ValueError) as error:  # the path is a text that somebody wrote, and may be none
        raise WeightsRejected(f"cannot read the weights of version {weights.version}: {error}") from error
    except BrokenOff as error:
        raise TransferBroken(f"weights of version {weights.version}: {error}") from error


def check_weights(model: PreTrainedModel, contents: Contents) -> None:
    """Raise ``WeightsRejected`` unless these are exactly this model's tensors, tied names aside, or its adapter's."""
    if isinstance(contents, Adapter):
        check_adapter(model, contents)
    else:
        _check_tensors(model, contents)


def _check_tensors(model: PreTrainedModel, tensors: Tensors) -> None:
    own = model.state_dict(keep_vars=True)
    unknown = sorted(set(tensors) - set(own))
    given = {id(own[name]) for name in tensors if name in own}
    missing = sorted(name for name, tensor in own.items() if id(tensor) not in given)
    wrong = [
        f"{name} {tuple(tensor.shape)} instead of {tuple(own[name].shape)}"
        for name, tensor in tensors.items()
        if name in own and own[name].shape != tensor.shape
    ]
    if unknown or missing or wrong:
        raise WeightsRejected(
            f"weights do not fit the model: unknown {unknown[:3]}, missing {missing[:3]}, of another shape {wrong[:3]}"
        )


@torch.no_grad()
def put_weights(model: PreTrainedModel, contents: Contents) -> None:
    """Copy tensors into ``model`` in place, so that tied weights stay tied, or into its adapter.

    Raises:
        WeightsRejected: they do not fit; the model is as it was.
    """
    if isinstance(contents, Adapter):
        put_adapter(model, contents)
        return
    _check_tensors(model, contents)
    own = model.state_dict()
    for name, tensor in contents.items():
        own[name].copy_(tensor)
