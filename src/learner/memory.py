"""What the learner holds in memory at its peak, part by part, for a model of any size.

Owns the arithmetic behind ``waymark check``; it follows ``learner.trainer``. Imports no torch.

With a = the actor's parameters, c = a critic's (``ModelSize.critic_parameters``) and k = the number of critics that the
algorithm asks for, t = a + k c are trained. In bytes:

- weights 4 t, gradients 4 t, AdamW's two moments 8 t: all in fp32, whatever ``learner.precision`` is. A model's
  gradients stay until its own next update, so those of all models are there together.
- reference 4 a where ``learner.reference`` is ``warm_start``; for ``phase_start`` log-probabilities are kept, no copy.
- bf16 copies 2 a where ``learner.precision`` is ``bfloat16``: autocast's, of the one model in work.
- of these but the copies, each of r = ``learner.ranks`` ranks holds its share. In place of copies it holds what it
  gathers of the model in work, b bytes a parameter (b = 4, or 2 in bf16): embedding and output layer, e parameters, and
  two layers, y each; gradients of e + y before they are shared out, and a buffer of 4 bytes for the larger of both.
- activations: per token of a micro-batch 4 n + b (2 w L + q + 4 m) + c (2 q + v), with n, q, v, m, w, L =
  ``ModelSize.norms``, ``queries``, ``keys_values``, ``mlp``, ``width`` and ``layers``, b = 4, or 2 in bf16, and c = b,
  but 4 on a CPU. Norms keep their inputs in fp32; linear layers what they are given: the normed states twice a layer,
  attention's output, and a gated feed-forward part's product; that keeps gate, activation and up too; attention keeps
  queries, keys, values and its output. All layers' are there; with ``learner.recompute`` one layer's, 4 bytes for each
  number of the states between layers, and what the last norm keeps.
- logits 12 per token and entry of the vocabulary: three of their kind in fp32 (logits and log-probabilities going
  forward, log-probabilities and two gradients going back), for as many tokens as ``LOGITS_AT_ONCE`` allows.
- on the host, 4 a: the model while it is loaded or exported. Ranks load one after the other, and make a copy: 8 a,
  which only one of them holds at a time. A checkpoint and a publication are written and read tensor by tensor.

With ``learner.adapters`` t = (1 + k) l + k h, with l = an adapter's parameters and h = a head's; beside them lies one
frozen backbone of f a bytes, f = 2 or 4 by ``backbone_dtype``. The reference is one more adapter, autocast copies
adapters (and a backbone in fp32), activations are those of the layers with adapters, where each linear layer adds what
lies between an adapter's two parts, and a backbone in bf16 halves the states between layers. Each rank holds all of
that. On the host, an export, when the run ends, takes 4 a.

A micro-batch has ``learner.micro_batch_tokens`` tokens, or one sample's where that is longer. Of a model that also sees
or hears, the whole is counted as trained: an upper bound. Not counted are a GPU's context, what its allocator loses,
and the keys and values of a shared head, which each sample that has it gathers again.
"""

from __future__ import annotations

from dataclasses import dataclass

from learner.algorithms import resolve
from learner.settings import AdapterSettings, LearnerSettings
from policy.model_size import ModelSize
from policy.settings import DTYPE_BYTES
from records.memory import TORCH_PROCESS_MIB, MemoryPart

LOGITS_AT_ONCE = 1 << 24
"""Entries of the vocabulary times tokens whose logits are there at once: 64 MiB of float32."""


@dataclass(frozen=True, slots=True)
class _Models:
    """What is trained of the actor and of a critic, and what autocast copies, in parameters.

    ``frozen`` bytes lie beside it. ``layers`` take a gradient; each keeps ``between`` numbers more for a token. States
    between layers have ``state`` bytes a number.
    """

    actor: int
    critic: int
    copied: int
    frozen: int
    layers: int
    between: int
    state: int


def _models(adapters: AdapterSettings, size: ModelSize) -> _Models:
    if not adapters.rank:
        return _Models(size.parameters, size.critic_parameters, size.parameters, 0, size.layers, 0, 4)
    layers = min(adapters.layers or size.layers, size.layers)
    own = size.adapter_parameters(adapters.rank, adapters.modules, layers)
    number = DTYPE_BYTES[adapters.backbone_dtype]
    copied, frozen = own + (size.parameters if number == 4 else 0), number * size.parameters
    return _Models(own, own + size.critic_head, copied, frozen, layers, 14 * adapters.rank, number)


def published_parameters(settings: LearnerSettings, size: ModelSize) -> int:
    """Return how many parameters a publication hands over: the actor's, or its adapter's."""
    return _models(settings.adapters, size).actor


def learner_memory(settings: LearnerSettings, size: ModelSize, longest: int) -> tuple[MemoryPart, ...]:
    """Return the parts for a model of ``size`` whose longest sample, prompt and action together, is ``longest`` tokens.

    On ``cuda`` the first are the GPU's; else all are the host's.
    """
    algorithm, models = resolve(settings), _models(settings.adapters, size)
    critics = sum(len(settings.critic_parts(name)) for name in algorithm.critics)
    trained = models.actor + critics * models.critic
    tokens = max(settings.micro_batch_tokens, longest)
    half = settings.precision == "bfloat16"
    number = 2 if half else 4
    reference = 4 * models.actor if algorithm.reference == "warm_start" else 0
    on_gpu = settings.device.startswith("cuda")
    given = 2 * size.width * size.layers + size.queries + 4 * size.mlp
    layer = 4 * size.norms + number * given + (number if on_gpu else 4) * (2 * size.queries + size.keys_values)
    kept = layer * models.layers // size.layers + number * models.between * models.layers
    if settings.recompute:
        kept = models.state * size.width * (models.layers + 3) + layer // size.layers + number * models.between
    predicted = min(tokens, max(LOGITS_AT_ONCE // size.vocabulary, 1))
    ranks = 1 if settings.adapters.rank else settings.ranks  # of adapters each rank has all
    among = f", over {ranks} ranks" if ranks > 1 else ""
    held = {
        "backbone": (models.frozen, f"{settings.adapters.backbone_dtype}, frozen, one for all models"),
        "weights": (
            4 * trained // ranks,
            f"4 bytes a parameter that is trained: actor and {critics} critics{among}",
        ),
        "gradients": (4 * trained // ranks, f"4 bytes a parameter{among}"),
        "optimiser": (8 * trained // ranks, f"two moments of AdamW, 8 bytes a parameter{among}"),
        "reference": (reference // ranks, f"the policy at the warm start, 4 bytes a parameter{among}"),
        "bf16 copies": (2 * models.copied * (half and ranks == 1), "of the model in work, 2 bytes a parameter"),
        "gathered": (_gathered(size, half) * (ranks > 1), "whole layers of the model in work, and their gradients"),
        "activations": (kept * tokens, f"{kept} bytes for each of {tokens} tokens of a micro-batch"),
        "logits": (12 * size.vocabulary * predicted, f"12 bytes x {size.vocabulary} entries x {predicted} tokens"),
        "head": (4 * size.vocabulary * size.width * (models.state == 2), "a frozen output layer, applied in float32"),
    }
    files = (4 * size.parameters, "the model while it is loaded or exported, in float32")
    if ranks > 1:
        files = (8 * size.parameters // ranks, f"the model and a copy while it is loaded, by one rank at a time{among}")
    return (
        *(MemoryPart.of_bytes(name, count, on_gpu, why) for name, (count, why) in held.items() if count),
        MemoryPart.of_bytes("files", files[0], False, files[1]),
        MemoryPart("process", TORCH_PROCESS_MIB, False, "torch and transformers"),
    )


def _gathered(size: ModelSize, half: bool) -> int:
    """Return the bytes of what a rank holds whole of the model in work."""
    width = 2 if half else 4
    root = size.vocabulary * size.width + size.own_head
    layer = (size.parameters - root) // size.layers
    return width * (root + 2 * layer) + width * (root + layer) + 4 * max(root, layer)
