"""The names under which a model's files hold its weights, where transformers has others for them in memory.

Owns how the tensors of a loaded model are seen as those of its files: transformers renames some families' when it loads
them, and lays a mixture's experts one upon another. As a program it says what keeps a folder's model from being
published under these names. Invariants: the names are those that ``save_pretrained`` writes; a
tensor of the files is a view of one in memory, so that nothing is copied for it; no number is looked at, so that a
model whose parameters are spread over processes is seen as any other.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion
from transformers.utils import logging as transformers_logging

from policy.model_size import Shapes, shapes_in_folder
from policy.vllm.inside.waymark_weights import View, misfit_of
from policy.weights import own_tensors

_HEAD = "lm_head.weight"


class NoViews(ValueError):
    """A tensor of the model's files is no view of one in memory; the text names it."""


class _NothingCopied(TorchDispatchMode):
    """Copies are what they are copies of; used for tensors without storage, whose views then tell where they lie."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0] if func is torch.ops.aten.clone.default else func(*args, **(kwargs or {}))


def checkpoint_views(model: PreTrainedModel, tensors: Mapping[str, torch.Tensor]) -> dict[str, View]:
    """Return the tensors of the model's files by their names there, as views of ``tensors`` (the model's own by name).

    Raises:
        NoViews: the files hold some of them joined or in another order.
    """
    shapes = {name: torch.empty(tensor.shape, dtype=tensor.dtype, device="meta") for name, tensor in tensors.items()}
    held = {tensor.untyped_storage()._cdata: name for name, tensor in shapes.items()}
    try:
        with _NothingCopied():
            on_disk = revert_weight_conversion(model, dict(shapes))
    except (RuntimeError, ValueError) as error:
        raise NoViews(f"transformers does not tell how its files hold them: {error}") from error
    views = {}
    for name, tensor in on_disk.items():
        source = held.get(tensor.untyped_storage()._cdata)
        if source is None:
            raise NoViews(f"{name} is made of several tensors or in another order")
        views[name] = View(source, tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())
    if sum(prod(view.shape) for view in views.values()) != sum(tensor.numel() for tensor in tensors.values()):
        raise NoViews("its files hold more or fewer numbers")
    return views


def other_names(model: PreTrainedModel, tensors: Mapping[str, torch.Tensor]) -> dict[str, View] | None:
    """Return ``checkpoint_views`` where they are not the tensors themselves, under their own names.

    None also where there are no views: a server of vLLM then says what it lacks, and others need none.
    """
    try:
        views = checkpoint_views(model, tensors)
    except NoViews:
        return None
    same = views.keys() == tensors.keys() and all(
        name == view.source and view.shape == tuple(tensors[name].shape) for name, view in views.items()
    )
    return None if same else views


def misfit_of_folder(folder: Path) -> str:
    """Return what keeps a model from being published under the names in its ``folder``; empty where nothing does.

    The model is built without numbers, and none is read.

    Raises:
        OSError, ValueError: it cannot be built from what is there.
    """
    own = shapes_in_folder(folder)
    try:
        model = _without_numbers(folder, own)
        given: Shapes = {name: view.shape for name, view in checkpoint_views(model, own_tensors(model)).items()}
    except NoViews as error:
        return str(error)
    # A head that repeats the embedding follows it.
    return misfit_of({name: shape for name, shape in own.items() if name in given or not name.endswith(_HEAD)}, given)


def _without_numbers(folder: Path, shapes: Shapes) -> PreTrainedModel:
    """Return the model in ``folder`` as it is when it is loaded, without numbers."""
    transformers_logging.disable_progress_bar()
    with torch.device("meta"):
        config = AutoConfig.from_pretrained(str(folder), trust_remote_code=False)
        kind = type(AutoModelForCausalLM.from_config(config, trust_remote_code=False))
        tensors = {name: torch.empty(shape) for name, shape in shapes.items()}
    model: PreTrainedModel = kind.from_pretrained(None, config=config, state_dict=tensors, device_map="meta")
    return model


if __name__ == "__main__":
    sys.stdout.write(misfit_of_folder(Path(sys.argv[1])))
