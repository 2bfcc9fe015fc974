"""What the learner holds in memory at its peak, part by part, for a model of any size.

Owns the arithmetic behind ``waymark check``; it follows ``learner.trainer``. Imports no torch.

With a = the actor's parameters, c = a critic's (``ModelSize.critic_parameters``) and k = the number of critics that the
algorithm asks for, t = a + k c are trained. In bytes:

- weights 4 t, gradients 4 t, AdamW's two moments 8 t: all in fp32, whatever ``learner.precision`` is. A model's
  gradients stay until its own next update, so those of all models are there together.
- reference 4 a where ``learner.reference`` is ``warm_start``; for ``phase_start`` log-probabilities are kept, no copy.
- bf16 copies 2 a where ``learner.precision`` is ``bfloat16``: autocast's, of the one model in work.
- activations: per token of a micro-batch 12 n + b (2 q + v + 4 m), with n, q, v, m = ``ModelSize.norms``, ``queries``,
  ``keys_values`` and ``mlp``, and b = 4, or 2 in bf16. A norm keeps its input, the normed state and what linear layers
  are given of it (in bf16 about twice in half the bytes); attention keeps queries, keys, values and its output; a gated
  feed-forward part gate, its activation, up and their product. All layers' are there; with ``learner.recompute`` one
  layer's, 4 bytes for each number of the states between layers, and what the last norm keeps.
- logits 12 per token and entry of the vocabulary: three of their kind in fp32 (logits and log-probabilities going
  forward, log-probabilities and two gradients going back), for as many tokens as ``LOGITS_AT_ONCE`` allows.
- on the host, 8 a for a publication (a copy and its file's bytes); for a learner on a GPU 12 t + reference instead,
  which is what a checkpoint takes while it is read.

A micro-batch has ``learner.micro_batch_tokens`` tokens, or one sample's where that is longer. Of a model that also sees
or hears, the whole is counted as trained: an upper bound. Not counted are a GPU's context, what its allocator loses,
and the keys and values of a shared head, which each sample that has it gathers again.
"""

from __future__ import annotations

from learner.algorithms import resolve
from learner.settings import LearnerSettings
from policy.model_size import ModelSize
from records.memory import TORCH_PROCESS_MIB, MemoryPart

LOGITS_AT_ONCE = 1 << 24
"""Entries of the vocabulary times tokens whose logits are there at once: 64 MiB of float32."""


def learner_memory(settings: LearnerSettings, size: ModelSize, longest: int) -> tuple[MemoryPart, ...]:
    """Return the parts for a model of ``size`` whose longest sample, prompt and action together, is ``longest`` tokens.

    On ``cuda`` the first are the GPU's; else all are the host's.
    """
    algorithm = resolve(settings)
    critics, actor = len(algorithm.annotators), size.parameters
    trained = actor + critics * size.critic_parameters
    tokens = max(settings.micro_batch_tokens, longest)
    half = settings.precision == "bfloat16"
    reference = 4 * actor if algorithm.reference == "warm_start" else 0
    kept = 12 * size.norms + (2 if half else 4) * (2 * size.queries + size.keys_values + 4 * size.mlp)
    if settings.recompute:
        kept = 4 * size.width * (size.layers + 3) + kept // size.layers
    predicted = min(tokens, max(LOGITS_AT_ONCE // size.vocabulary, 1))
    on_gpu = settings.device.startswith("cuda")
    held = {
        "weights": (4 * trained, f"4 bytes a parameter: actor and {critics} critics"),
        "gradients": (4 * trained, "4 bytes a parameter"),
        "optimiser": (8 * trained, "two moments of AdamW, 8 bytes a parameter"),
        "reference": (reference, "the policy at the warm start, 4 bytes a parameter"),
        "bf16 copies": (2 * actor * half, "of the model in work, 2 bytes a parameter"),
        "activations": (kept * tokens, f"{kept} bytes for each of {tokens} tokens of a micro-batch"),
        "logits": (12 * size.vocabulary * predicted, f"12 bytes x {size.vocabulary} entries x {predicted} tokens"),
    }
    files = (12 * trained + reference, "a checkpoint while it is read") if on_gpu else (8 * actor, "a publication")
    return (
        *(MemoryPart.of_bytes(name, count, on_gpu, why) for name, (count, why) in held.items() if count),
        MemoryPart.of_bytes("files", files[0], False, files[1]),
        MemoryPart("process", TORCH_PROCESS_MIB, False, "torch and transformers"),
    )
