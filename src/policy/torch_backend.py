"""The policy backend ``torch``: one ``PolicyServer`` or more, as Ray actors (``policy.torch_service``).

Owns its row and its options. Importing this module imports neither torch nor Ray, so that a recipe can be read.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from policy.backend import PolicyBackend, PolicyService, ServerProcesses, Serving
from policy.model_size import ModelSize
from policy.settings import DTYPE_BYTES, PLANES, PolicySettings
from records.bounds import at_least, gpus
from records.checks import Check, Status
from records.memory import TORCH_PROCESS_MIB, MemoryPart

COLUMN_BLOCK = 128
"""Slots of keys and values grow by so many tokens."""


@dataclass(frozen=True)
class TorchSettings:
    """Servers on torch, as Ray actors; their device and precision are ``policy.device`` and ``policy.dtype``."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = ("servers", "cpus", "gpus", "memory_mb", "restarts")

    servers: int = 1
    """Number of policy servers; the requests of one episode stay with one server."""
    cpus: float = 0.5
    """Logical cores declared by one server."""
    gpus: float = 0.0
    """GPUs declared by one server: a share of one, or a whole number."""
    memory_mb: int = 600
    """Memory of one server, in MiB, for the laptop's tiny model; a larger model needs its own number."""
    threads: int = 1
    """Torch threads of one server."""
    max_batch: int = 16
    """Most replies that one server generates at once."""
    max_prefill_tokens: int = 4096
    """Most prompt tokens that one server takes in between two tokens of the running replies."""
    kept_prompts: int = 8
    """Prompts whose keys and values one server keeps: a prompt that begins alike, as an episode's next does, is read
    from where it differs. As many as there are episodes at once are enough; 0 keeps none."""
    batch_invariant: bool = False
    """One request at a time, its whole prompt read, so that replies do not depend on what else is asked; about half
    the speed."""
    restarts: int | None = None
    """How often Ray restarts a server that died; unset is for as long as the run lives, as nodes that come and go
    need."""

    def __post_init__(self) -> None:
        """Refuse counts of nothing."""
        at_least(self, 1, "servers", "threads", "max_batch", "max_prefill_tokens", "memory_mb")
        at_least(self, 0, "cpus", "kept_prompts")
        gpus(self, "gpus")
        if self.restarts is not None:
            at_least(self, 0, "restarts")

    @property
    def prompts_kept(self) -> int:
        """Prompts that one server keeps: none where it reads each whole."""
        return 0 if self.batch_invariant else self.kept_prompts


def processes(options: TorchSettings) -> ServerProcesses:
    """Return what the servers declare to Ray, and their memory."""
    return ServerProcesses(options.servers, options.cpus, options.gpus, options.memory_mb, options.prompts_kept)


def memory(settings: PolicySettings, options: TorchSettings, size: ModelSize, published: int) -> tuple[MemoryPart, ...]:
    """Return what one server holds; b is 4 bytes, or 2 where ``policy.dtype`` is ``bfloat16``.

    Weights b a parameter. Keys and values: b x ``ModelSize.keys_values`` for each token of ``max_batch`` slots and of
    ``kept_prompts``, each as long as the longest prompt and reply, in blocks of 128. A prefill: keys and values of its
    tokens once more, four inner states of one layer's feed-forward part, and the logits of each prompt at each prompt's
    end in fp32. While weights are taken, on the host, the file's bytes and its tensors, each 4 bytes for each of
    ``published`` parameters.
    """
    number, on_gpu = DTYPE_BYTES[settings.dtype], settings.device.startswith("cuda")
    slots = 1 if options.batch_invariant else options.max_batch
    kept = options.prompts_kept
    longest = settings.max_prompt_tokens + settings.max_new_tokens
    columns = -(-longest // COLUMN_BLOCK) * COLUMN_BLOCK
    prefill = max(options.max_prefill_tokens, settings.max_prompt_tokens)
    step = prefill * (size.keys_values + 4 * size.mlp // size.layers) * number + 4 * slots * slots * size.vocabulary
    held = {
        "weights": (size.parameters * number, f"{number} bytes a parameter"),
        "keys and values": (
            (slots + kept) * columns * size.keys_values * number,
            f"{slots} replies and {kept} kept prompts of {columns} tokens",
        ),
        "prefill": (step, f"{prefill} prompt tokens"),
    }
    return (
        *(MemoryPart.of_bytes(name, count, on_gpu, why) for name, (count, why) in held.items()),
        MemoryPart.of_bytes("files", 8 * published, False, "published weights while they are taken"),
        MemoryPart("process", TORCH_PROCESS_MIB, False, "torch and transformers"),
    )


def preflight(settings: PolicySettings, options: TorchSettings) -> list[Check]:
    """Torch and transformers are installed."""
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        return [Check("policy.backend", Status.FAIL, f"{', '.join(missing)} not installed", "run `make setup`")]
    return []


@contextmanager
def serve(serving: Serving, options: TorchSettings) -> Iterator[PolicyService]:
    """Start the servers and watch them; end them with the block. Needs a running Ray."""
    from policy.torch_service import running_servers

    with running_servers(serving, options) as service:
        yield service


TORCH = PolicyBackend(TorchSettings, processes, memory, preflight, serve, PLANES)
