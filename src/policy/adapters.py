"""LoRA adapters: their shape, their place in a model, and what is made of both.

Owns ``AdapterShape`` and ``Adapter``, and attaching one (by peft), putting tensors into it and merging it. Invariants:
the model's own weights are frozen and never change; an adapter's are float32 whatever the model's precision is, and
have the names that peft gives them in a file; adapters are merged in float32 only.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from policy.published_weights import WeightsRejected

SERVED = "served"
"""Name of the one adapter that a server attaches."""
_PREFIX = "base_model.model."


@dataclass(frozen=True, slots=True)
class AdapterShape:
    """A low-rank addition ``alpha / rank`` x B A to each of the linear layers ``modules``, full names in the model."""

    rank: int
    alpha: float
    modules: tuple[str, ...]

    def to_json(self) -> str:
        """Return the shape as the text of peft's ``adapter_config.json``."""
        content = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": None,
            "r": self.rank,
            "lora_alpha": self.alpha,
            "lora_dropout": 0.0,
            "bias": "none",
            "target_modules": list(self.modules),
            "inference_mode": True,
        }
        return json.dumps(content, indent=1)

    @classmethod
    def from_json(cls, text: str) -> AdapterShape:
        """Return the shape that ``to_json`` wrote; raise ``WeightsRejected`` where the text is another."""
        try:
            content = json.loads(text)
            shape = cls(content["r"], content["lora_alpha"], tuple(content["target_modules"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise WeightsRejected(f"an adapter without a shape: {type(error).__name__}: {error}") from error
        numbers = type(shape.rank) is int and shape.rank > 0 and type(shape.alpha) in (int, float)
        if not (numbers and all(type(name) is str for name in shape.modules) and shape.to_json() == text):
            raise WeightsRejected(f"an adapter whose shape is not Waymark's: {text[:200]}")
        return shape

    def sizes(self, model: nn.Module) -> dict[str, tuple[int, ...]]:
        """Return names and shapes of the adapter's tensors; raise ``WeightsRejected`` for another kind of model."""
        found: dict[str, tuple[int, ...]] = {}
        for module in self.modules:
            try:
                layer = model.get_submodule(module)
                taken, given = int(layer.in_features), int(layer.out_features)  # type: ignore[arg-type]
            except (AttributeError, TypeError) as error:
                raise WeightsRejected(f"the adapter is of another model: this one has no linear {module}") from error
            found[f"{_PREFIX}{module}.lora_A.weight"] = (self.rank, taken)
            found[f"{_PREFIX}{module}.lora_B.weight"] = (given, self.rank)
        return found


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter's shape and its tensors by peft's names."""

    shape: AdapterShape
    tensors: Mapping[str, Tensor]

    def on_host(self) -> Adapter:
        """Return the adapter in the host's memory."""
        return Adapter(self.shape, {name: tensor.detach().cpu() for name, tensor in self.tensors.items()})


def linear_modules(model: PreTrainedModel, layers: int | None, names: Sequence[str]) -> tuple[str, ...]:
    """Return the full names of the linear layers of the uppermost ``layers`` decoder layers (None: of all).

    Only those whose last part is in ``names``, where there are any.

    Raises:
        ValueError: there is none, a name is none's, or the architecture's layers are not found.
    """
    decoder = model.get_decoder()
    if not isinstance(getattr(decoder, "layers", None), nn.ModuleList):
        raise ValueError(f"learner.adapters: the layers of {type(model).__name__} are not known; train it whole")
    inside = next(name for name, module in model.named_modules() if module is decoder)
    first = 0 if layers is None else max(len(decoder.layers) - layers, 0)
    found = tuple(
        f"{inside}.layers.{number}.{name}"
        for number in range(first, len(decoder.layers))
        for name, module in decoder.layers[number].named_modules()
        if isinstance(module, nn.Linear) and (not names or name.rpartition(".")[2] in names)
    )
    if lacking := sorted(set(names) - {name.rpartition(".")[2] for name in found}) or (not found and ["any name"]):
        there = {
            name.rpartition(".")[2] for name, part in decoder.layers.named_modules() if isinstance(part, nn.Linear)
        }
        raise ValueError(
            f"learner.adapters.modules: {type(model).__name__} has no linear layer of {', '.join(lacking)}; its layers "
            f"have {', '.join(sorted(there)) or 'none'}"
        )
    return found


def attach_adapter(model: PreTrainedModel, shape: AdapterShape, name: str) -> dict[str, nn.Parameter]:
    """Give ``model`` a further adapter that adds nothing yet, and freeze the rest; return its parameters by name."""
    from peft import LoraConfig, inject_adapter_in_model  # seconds, and only runs with adapters need it

    config = LoraConfig(r=shape.rank, lora_alpha=shape.alpha, target_modules=list(shape.modules), lora_dropout=0.0)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Already found a `peft_config`")  # a further adapter is what is asked for
        inject_adapter_in_model(config, model, name)
    for module in shape.modules:
        layer = model.get_submodule(module)
        for part in (layer.lora_A, layer.lora_B):
            part[name].float()  # type: ignore[index]
    return _attached(model, name)


def _attached(model: nn.Module, name: str) -> dict[str, nn.Parameter]:
    """Return the parameters of the adapter ``name`` by peft's names in a file; empty where there is none."""
    end = f".{name}.weight"
    found = {own.removesuffix(end): parameter for own, parameter in model.named_parameters() if own.endswith(end)}
    return {f"{_PREFIX}{own}.weight": parameter for own, parameter in found.items()}


def check_adapter(model: nn.Module, adapter: Adapter) -> None:
    """Raise ``WeightsRejected`` unless the adapter's tensors are those of its shape, and it fits this model.

    Where an adapter is served already, it is of the same shape.
    """
    wanted = adapter.shape.sizes(model)
    found = {name: tuple(tensor.shape) for name, tensor in adapter.tensors.items()}
    differing = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
    if differing:
        raise WeightsRejected(f"the adapter does not fit the model: {differing[:3]} missing, unknown or of other shape")
    served = {name: tuple(parameter.shape) for name, parameter in _attached(model, SERVED).items()}
    if served not in ({}, found):
        raise WeightsRejected("the adapter has another shape than the one that is served; start the server again")


@torch.no_grad()
def put_adapter(model: PreTrainedModel, adapter: Adapter) -> None:
    """Attach the adapter ``SERVED``, where the model has none yet, and copy the tensors into it.

    Raises:
        WeightsRejected: they do not fit, or the attached one is of another shape; the model is as it was.
    """
    check_adapter(model, adapter)
    own = _attached(model, SERVED) or attach_adapter(model, adapter.shape, SERVED)
    for name, parameter in own.items():
        parameter.copy_(adapter.tensors[name])


@torch.no_grad()
def merge_adapter(model: PreTrainedModel, adapter: Adapter) -> None:
    """Add the adapter to the weights of ``model``, which has none attached and is in float32.

    Raises:
        WeightsRejected: it does not fit; the model is as it was.
    """
    check_adapter(model, adapter)
    for module in adapter.shape.modules:
        down, up = (adapter.tensors[f"{_PREFIX}{module}.lora_{part}.weight"] for part in "AB")
        model.get_parameter(f"{module}.weight").add_(up @ down, alpha=adapter.shape.alpha / adapter.shape.rank)
