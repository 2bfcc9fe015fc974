"""One frozen backbone in memory, on which each of the learner's models has a LoRA adapter of its own.

Owns ``SharedBackbone`` and ``Adapted``. Invariants: the backbone never changes; a model's pass runs with its own
adapter, which the pass itself puts in place; training one adapter leaves the others as they are, bit for bit. Where
adapters lie in upper layers alone, the layers below say the same to every model: they take no gradient, and run once
for models that are asked about one batch after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from learner.attention import attend_by_segments
from learner.batching import Batch
from learner.language_model import LanguageModel, Read
from learner.settings import AdapterSettings
from policy.adapters import Adapter, AdapterShape, attach_adapter, linear_modules


class SharedBackbone:
    """``model``, frozen, with adapters by name.

    ``seed`` is that of their first weights; with ``autocast`` passes run under it, and adapters compute in its type.

    Raises:
        ValueError: the model has no linear layer of the names in the settings.
    """

    def __init__(self, model: PreTrainedModel, settings: AdapterSettings, seed: int, *, autocast: bool = False) -> None:
        modules = linear_modules(model, settings.layers, settings.modules)
        self.model = model
        self.shape = AdapterShape(settings.rank, settings.alpha, modules)
        self._seed = seed
        self._autocast = autocast
        self._adapters: dict[str, dict[str, nn.Parameter]] = {}
        self._active: str | None = None
        layers = model.get_decoder().layers
        count = len(layers) if settings.layers is None else min(settings.layers, len(layers))
        self._below: list[nn.Module] = list(layers[: len(layers) - count])
        self._entered: tuple[Tensor | None, Tensor | None] = (None, None)

    def adapter(self, name: str, like: str | None = None) -> Mapping[str, nn.Parameter]:
        """Return the adapter ``name`` by peft's names; a new one adds nothing, one ``like`` another what that adds."""
        if name not in self._adapters:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self._seed)
                self._adapters[name] = attach_adapter(self.model, self.shape, name)
            self._active = None  # peft has changed which one is
            for module in self.shape.modules:
                # Otherwise each adapter makes and keeps a copy of its input in float32.
                self.model.get_submodule(module).cast_input_dtype_enabled = not self._autocast  # type: ignore[assignment]
        if like is not None:
            with torch.no_grad():
                for own, other in self._adapters[like].items():
                    self._adapters[name][own].copy_(other)
        return self._adapters[name]

    def content(self, name: str) -> Adapter:
        """Return the adapter's tensors with their shape, as they are published."""
        return Adapter(self.shape, {own: parameter.detach() for own, parameter in self._adapters[name].items()})

    def activate(self, name: str) -> None:
        """Let passes run with this adapter from now on; a backward pass belongs to the pass that was last."""
        if name == self._active:
            return
        for module in self.shape.modules:
            self.model.get_submodule(module).set_adapter(name)  # type: ignore[operator]
        for adapter in self._adapters.values():
            for parameter in adapter.values():
                parameter.requires_grad_(True)  # peft has frozen those that are not active
        self._active = name

    def states(self, **inputs: Any) -> Any:
        """Return what the base model returns; layers below the adapters run once for one tensor ``input_ids``."""
        if not self._below:
            return self.model.base_model(**inputs)
        batch, entering = self._entered
        if batch is inputs["input_ids"]:
            with _answered(self._below, entering):
                return self.model.base_model(**inputs)
        return self._noted(inputs)

    def _noted(self, inputs: dict[str, Any]) -> Any:
        """Run all layers, and note what enters the lowest that has adapters."""

        def note(module: nn.Module, given: object, result: Tensor) -> None:
            self._entered = (inputs["input_ids"], result)

        hook = self._below[-1].register_forward_hook(note)
        try:
            return self.model.base_model(**inputs)
        finally:
            hook.remove()


class Adapted(nn.Module):
    """What runs on the backbone with the adapter ``name``: its parameters are the adapter's, and nothing else.

    ``run`` is called with what the module is called with, once the adapter is in place.
    """

    def __init__(self, backbone: SharedBackbone, name: str, run: Callable[..., Any], like: str | None = None) -> None:
        super().__init__()
        for own, parameter in backbone.adapter(name, like).items():
            _place(self, own, parameter)
        self._backbone, self._name, self._run = backbone, name, run

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what ``run`` makes of the arguments."""
        self._backbone.activate(self._name)
        return self._run(*args, **kwargs)


class AdaptedLanguageModel(LanguageModel):
    """The backbone with the adapter ``name`` as a language model; its parameters are the adapter's alone."""

    def __init__(self, backbone: SharedBackbone, name: str, like: str | None = None) -> None:
        nn.Module.__init__(self)
        object.__setattr__(self, "model", attend_by_segments(backbone.model))  # in use, but no part of this module
        self.adapter = Adapted(backbone, name, super().forward, like)

    def forward(self, read: Callable[[PreTrainedModel, Batch], Read], batch: Batch) -> Read:
        """Return what ``read`` makes of the model and ``batch``, with the adapter in place."""
        found: Read = self.adapter(read, batch)
        return found

    @property
    def kept(self) -> nn.Module:
        """The adapter."""
        return self.adapter


def _place(root: nn.Module, path: str, parameter: nn.Parameter) -> None:
    """Register ``parameter`` under a name with dots, as a part of parts."""
    *parts, leaf = path.split(".")
    for part in parts:
        if part not in dict(root.named_children()):
            root.add_module(part, nn.Module())
        root = root.get_submodule(part)
    root.register_parameter(leaf, parameter)


@contextmanager
def _answered(layers: list[nn.Module], answer: Tensor | None) -> Iterator[None]:
    """Let ``layers`` return ``answer`` in place of running."""
    for layer in layers:
        layer.forward = lambda *args, **kwargs: answer
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward
