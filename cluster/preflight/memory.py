"""What the model of a recipe takes, by part: on this machine's memory, and on its GPUs.

Owns the size of the model that a run starts from and what is said where its parts do not fit. The arithmetic of the
parts is with whoever holds them: ``learner.memory``, and each policy backend's ``memory``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cluster.preflight.machine import Machine
from cluster.recipe.recipe import Recipe
from learner.memory import learner_memory, published_parameters
from policy.backend import backend_of
from policy.hub import names_folder
from policy.model_size import ModelSize, size_in_folder, size_of_tiny, size_on_hub
from policy.settings import TINY
from records.memory import TORCH_PROCESS_MIB, MemoryPart

Parts = Sequence[MemoryPart]
_FULL_SHARE = 0.9
"""Fixed: what a GPU's context and its allocator's gaps leave of its memory, about."""
_LEARNER_ADVICE = (
    "train adapters (learner.adapters.rank), choose a smaller model, a smaller learner.micro_batch_tokens, "
    "learner.precision bfloat16, learner.recompute, or an algorithm with fewer critics"
)
_SERVER_ADVICE = "choose policy.dtype bfloat16, a smaller policy.options.max_batch, or a smaller model"


def size_of_start(recipe: Recipe) -> ModelSize:
    """Return the size of the model that the run starts from, without loading it.

    Raises:
        ModelSizeUnknown: its files, or the hub, do not tell.
    """
    model, start = recipe.policy.model, recipe.warm_start
    if model != TINY:
        return size_in_folder(Path(model)) if names_folder(model) else size_on_hub(recipe.policy)
    if start.checkpoint and start.clone != "always":
        return size_in_folder(recipe.checkpoint_path)
    return size_of_tiny(recipe.policy.tiny)


def parts_of_learner(recipe: Recipe, size: ModelSize) -> Parts:
    """Return what the learner holds."""
    return learner_memory(recipe.learner, size, recipe.policy.max_prompt_tokens + recipe.policy.max_new_tokens)


def parts_of_snapshot(recipe: Recipe, size: ModelSize) -> Parts:
    """Return what ``policy.snapshot`` holds, which reads a policy for an evaluation, in float32."""
    model, on_gpu = 4 * size.parameters, recipe.learner.device.startswith("cuda")
    return (
        MemoryPart.of_bytes("weights", model, on_gpu, "4 bytes a parameter"),
        MemoryPart.of_bytes("files", model, False, "the model while it is loaded or written, in float32"),
        MemoryPart("process", TORCH_PROCESS_MIB, False, "torch and transformers"),
    )


def parts_of_server(recipe: Recipe, size: ModelSize) -> Parts:
    """Return what one policy server holds."""
    backend, options = backend_of(recipe.policy)
    return backend.memory(recipe.policy, options, size, published_parameters(recipe.learner, size))


def total_mib(parts: Parts, *, on_gpu: bool) -> int:
    """Return the sum of the GPU's parts, or of the host's."""
    return sum(part.mib for part in parts if part.on_gpu is on_gpu)


def above_settings(learner: Parts, server: Parts, learner_mb: int, server_mb: int) -> list[str]:
    """Return a sentence for each setting that says less than the parts on the host add up to."""
    settings = (
        ("run.resources.learner_memory_mb", learner_mb, learner),
        ("policy.options.memory_mb", server_mb, server),
    )
    needs = [(name, given, total_mib(parts, on_gpu=False)) for name, given, parts in settings]
    return [
        f"memory: {name} is {given}, but the parts of this model come to {need} MiB, which the plan counts: set it so"
        for name, given, need in needs
        if need > given
    ]


def on_gpus(learner: Parts, server: Parts, servers: int, machine: Machine) -> tuple[list[str], list[str]]:
    """Return what does not fit on a GPU of this machine, and what barely does; nothing where its memory is not known.

    With one GPU, learner and servers share it; with more, each has one to itself.
    """
    if machine.gpu_memory_mb is None:
        return [], []
    trains, serves = total_mib(learner, on_gpu=True), total_mib(server, on_gpu=True)
    holders = [("the learner", trains, _LEARNER_ADVICE), ("a policy server", serves, _SERVER_ADVICE)]
    if machine.gpus == 1 and trains and serves:
        holders = [("learner and policy servers on it", trains + servers * serves, _LEARNER_ADVICE)]
    missing, warnings = [], []
    for name, need, advice in holders:
        line = f"GPU memory: {name} would need {need} MiB of a GPU's {machine.gpu_memory_mb}; {advice}"
        if need > machine.gpu_memory_mb:
            missing.append(line)
        elif need > _FULL_SHARE * machine.gpu_memory_mb:
            warnings.append(line)
    return missing, warnings
