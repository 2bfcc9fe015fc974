"""How large a model is: parameters and the widths that its memory depends on, by the shapes of its tensors.

Owns ``ModelSize`` and the three places that shapes come from: the headers of a folder's safetensors files, the hub's,
and the ``tiny`` preset. Invariants: no weight is read, and no torch imported; a model whose tensors have other names
than those of Llama, Qwen and Gemma is said to be unknown, never guessed at.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from policy.settings import PolicySettings, TinyShape
from policy.vllm.inside.waymark_model_files import weight_files
from records.durable import open_file

Shapes = Mapping[str, tuple[int, ...]]
_LONGEST_HEADER = 100_000_000
"""Fixed: the limit of the safetensors library itself, in bytes."""
_HUB_LIMIT_S = 10.0
"""Fixed: one header from the hub; a plan is worth no longer wait."""
_NOT_TEXT = ("vision", "audio")


class ModelSizeUnknown(ValueError):
    """The model's size cannot be told; the text says why."""


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Numbers of a causal language model; all but ``vocabulary``, ``width`` and ``layers`` are sums over its layers.

    ``parameters`` counts every tensor as stored, a tied one once; ``own_head`` those of them in an output layer of its
    own, not tied to the embedding. ``width`` is that of the hidden state. ``queries``, ``keys_values``, ``mlp`` and
    ``norms`` are the numbers that one token makes in all layers: queries, keys and values, one of the feed-forward
    part's inner states, and what the norms take in.
    """

    parameters: int
    own_head: int
    vocabulary: int
    width: int
    layers: int
    queries: int
    keys_values: int
    mlp: int
    norms: int

    def adapter_parameters(self, rank: int, modules: Collection[str], layers: int) -> int:
        """Those of a LoRA adapter of ``rank`` in ``layers`` layers, on linear layers of these names (empty: all)."""
        wide, keys = self.width * self.layers, self.keys_values // 2
        sides = {"q_proj": self.queries, "k_proj": keys, "v_proj": keys, "o_proj": self.queries}
        sides |= dict.fromkeys(("gate_proj", "up_proj", "down_proj"), self.mlp)
        total = sum(wide + other for name, other in sides.items() if not modules or name in modules)
        return rank * total * layers // self.layers

    @property
    def critic_head(self) -> int:
        """Those of a critic's head of two linear layers."""
        return self.width * self.width + 2 * self.width + 1

    @property
    def critic_parameters(self) -> int:
        """Those of a critic: the backbone without an output layer, and a head."""
        return self.parameters - self.own_head + self.critic_head


def size_of(shapes: Shapes) -> ModelSize:
    """Return the size of the model with these tensors; raise ``ModelSizeUnknown`` for one of another build."""
    text = {name: shape for name, shape in shapes.items() if not any(word in name for word in _NOT_TEXT)}

    def found(part: str) -> list[tuple[int, ...]]:
        return [shape for name, shape in text.items() if name.endswith(f".{part}.weight")]

    def rows(part: str) -> int:
        return sum(shape[0] for shape in found(part))

    embedding, keys = found("embed_tokens"), found("self_attn.k_proj")
    plain = len(embedding) == 1 and len(embedding[0]) == 2 and not any(".experts." in name for name in text)
    if not (plain and keys and found("self_attn.q_proj") and found("mlp.up_proj")):
        raise ModelSizeUnknown("its tensors are not named and shaped as those of Llama, Qwen or Gemma")
    vocabulary, width = embedding[0]
    queries = rows("self_attn.q_proj")
    norms = sum(shape[0] for name, shape in text.items() if name.endswith("norm.weight") and shape == (width,))
    norms += queries * bool(found("self_attn.q_norm")) + rows("self_attn.k_proj") * bool(found("self_attn.k_norm"))
    return ModelSize(
        parameters=sum(prod(shape) for shape in shapes.values()),
        own_head=sum(prod(shape) for name, shape in text.items() if name.endswith("lm_head.weight")),
        vocabulary=vocabulary,
        width=width,
        layers=len(keys),
        queries=queries,
        keys_values=rows("self_attn.k_proj") + rows("self_attn.v_proj"),
        mlp=rows("mlp.up_proj"),
        norms=norms,
    )


def size_in_folder(folder: Path) -> ModelSize:
    """Return the size of the model in a folder; raise ``ModelSizeUnknown`` where its files do not tell it."""
    return size_of(shapes_in_folder(folder))


def shapes_in_folder(folder: Path) -> Shapes:
    """Return the shapes of the tensors in a folder, by the headers of the files that transformers would load.

    Raises:
        ModelSizeUnknown: there are none that can be read.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    try:
        for file in weight_files(folder):
            shapes |= _shapes_in(file)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelSizeUnknown(f"the weights in {folder} cannot be read: {type(error).__name__}: {error}") from error
    if not shapes:
        raise ModelSizeUnknown(f"the weights in {folder} cannot be read: there are none")
    return shapes


def _shapes_in(path: Path) -> dict[str, tuple[int, ...]]:
    """Return names and shapes by a safetensors file's header: its length in 8 bytes, then JSON."""
    with open_file(path) as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _LONGEST_HEADER:
            raise ValueError(f"{path.name} is no safetensors file")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    return {name: _shape(name, tensor["dtype"], tensor["shape"]) for name, tensor in header.items()}


def _shape(name: str, dtype: str, shape: list[int]) -> tuple[int, ...]:
    if not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError(f"{name} has the shape {shape!r:.80}")
    if "weight" in name and len(shape) > 1 and not dtype.startswith(("F", "BF")):
        raise ValueError(f"{name} is stored as {dtype}: a quantised model cannot be trained")
    return tuple(shape)


def size_on_hub(settings: PolicySettings) -> ModelSize:
    """Return the size of a model on the Hugging Face hub, by the headers that it gives; the model is not fetched."""
    from huggingface_hub import get_safetensors_metadata  # only for names on the hub; costs 0.3 s to import
    from huggingface_hub.errors import HTTPError, NotASafetensorsRepoError, SafetensorsParsingError

    revision = settings.revision or None
    try:
        answer = get_safetensors_metadata(settings.model, revision=revision, timeout=_HUB_LIMIT_S)
        shapes = {
            name: _shape(name, tensor.dtype, tensor.shape)
            for file in answer.files_metadata.values()
            for name, tensor in file.tensors.items()
        }
    except (HTTPError, NotASafetensorsRepoError, SafetensorsParsingError, OSError, ValueError) as error:
        raise ModelSizeUnknown(f"the Hugging Face hub does not tell it of {settings.model}: {error}") from error
    return size_of(shapes)


def size_of_tiny(shape: TinyShape) -> ModelSize:
    """Return the size of the ``tiny`` preset (``policy.presets``) with a vocabulary that is full."""
    width, head_width = shape.width, shape.width // shape.heads
    keys = head_width * shape.key_value_heads
    layer: dict[str, tuple[int, ...]] = {
        **{f"{norm}layernorm": (width,) for norm in ("input_", "post_attention_")},
        **{f"{norm}_layernorm": (width,) for norm in ("pre_feedforward", "post_feedforward")},
        **{f"self_attn.{part}_norm": (head_width,) for part in "qk"},
        **{f"self_attn.{part}_proj": (width, width) for part in "qo"},
        **{f"self_attn.{part}_proj": (keys, width) for part in "kv"},
        **{f"mlp.{part}_proj": (shape.mlp_width, width) for part in ("gate", "up")},
        "mlp.down_proj": (width, shape.mlp_width),
    }
    layers = {f"layers.{i}.{part}.weight": sides for i in range(shape.layers) for part, sides in layer.items()}
    if shape.induction_heads:
        biases = {f"self_attn.{part}_proj": layer[f"self_attn.{part}_proj"][:1] for part in "qkvo"}
        layers |= {f"layers.{i}.{part}.bias": sides for i in range(shape.layers) for part, sides in biases.items()}
    return size_of({"model.embed_tokens.weight": (shape.vocab_size, width), "model.norm.weight": (width,), **layers})
