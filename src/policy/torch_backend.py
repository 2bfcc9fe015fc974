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
from policy.settings import PolicySettings
from records.bounds import at_least
from records.checks import Check, Status


@dataclass(frozen=True)
class TorchSettings:
    """Servers on torch, as Ray actors; their device and precision are ``policy.device`` and ``policy.dtype``."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    servers: int = 1
    """Number of policy servers; the requests of one episode stay with one server."""
    cpus: float = 0.5
    """Logical cores declared by one server."""
    gpus: float = 0.0
    """GPUs declared by one server."""
    memory_mb: int = 600
    """Memory of one server, in MiB, for the laptop's tiny model; a larger model needs its own number."""
    threads: int = 1
    """Torch threads of one server."""
    max_batch: int = 16
    """Most replies that one server generates at once."""
    max_prefill_tokens: int = 4096
    """Most prompt tokens that one server takes in between two tokens of the running replies."""
    batch_invariant: bool = False
    """One request at a time, so that replies do not depend on what else is asked; about half the speed."""
    restarts: int = 5
    """How often Ray restarts a server that died."""

    def __post_init__(self) -> None:
        """Refuse counts of nothing."""
        at_least(self, 1, "servers", "threads", "max_batch", "max_prefill_tokens", "memory_mb")
        at_least(self, 0, "cpus", "gpus", "restarts")


def processes(options: TorchSettings) -> ServerProcesses:
    """Return what the servers declare to Ray, and their memory."""
    return ServerProcesses(options.servers, options.cpus, options.gpus, options.memory_mb)


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


TORCH = PolicyBackend(TorchSettings, processes, preflight, serve)
