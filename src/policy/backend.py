"""The plug point of policies: what serves a policy, and how a backend is found by its name.

Owns ``PolicyBackend``, the ``PolicyService`` that it starts, and the registry ``BACKENDS``. Invariants: a backend is
told its own options and nothing of another's; every backend passes ``tests/policy/backend_contract.py``; importing
this module imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from plugs.options import read_options
from plugs.registry import Registry
from policy.client import PolicySource
from policy.data_planes import DataPlane, by_file
from policy.model_size import ModelSize
from policy.publication import WeightServer
from policy.settings import PolicySettings
from records.checks import Check
from records.memory import MemoryPart

_START_S = 600.0
"""Fixed: for a backend that names no limit of its own; a server reads its model and compiles what it runs."""
S = TypeVar("S")


def reached_anywhere(options: object) -> list[Check]:
    """A backend whose servers are reached from every node of a cluster, as Ray's actors are, has nothing to say."""
    return []


@dataclass(frozen=True, slots=True)
class Serving:
    """What is to be served: ``model`` is a policy folder.

    ``published`` is the file that names the weights that were published last, if there are any; a server that starts
    or starts again serves these. ``run`` is a text of this run's own, for names that others may see; ``logs`` a folder
    for what servers print, which need not exist. ``adapter_rank`` is that of the adapters that will be published on
    the model; 0 where whole models are. ``model`` and ``published`` may be addresses of a run in a store. Each server
    declares custom ``resources`` to Ray, beside what its options say. ``plane`` is how weights come to a server that
    others start again. ``mark`` is that of the run folder (``records.folder_mark``), which a server of the run's own
    must see; empty where it need not. ``joined`` says that Ray is a cluster's, so that who asks may be on another node.
    """

    settings: PolicySettings
    model: str
    published: str | Path
    run: str
    logs: Path
    adapter_rank: int = 0
    resources: Mapping[str, float] = field(default_factory=dict)
    plane: DataPlane = by_file
    mark: str = ""
    joined: bool = False


class PolicyService(Protocol):
    """A policy that is being served, by one or more servers; whoever hangs is found and started afresh meanwhile."""

    @property
    def source(self) -> PolicySource:
        """How a rollout worker in another process comes by a client."""
        ...

    def weight_servers(self) -> Sequence[WeightServer]:
        """Return the servers that take published weights."""
        ...

    def replace(self, name: str) -> None:
        """Start afresh the server of this name, which missed a publication; it comes back with what is published."""
        ...


@dataclass(frozen=True, slots=True)
class ServerProcesses:
    """The processes that a backend starts, for the resource plan; cores, GPUs and memory (MiB) are per process.

    ``kept_prompts`` is how many episodes a process keeps the prompts of, 0 where it keeps none or sees to that itself.
    ``start_s`` is how long one may take from having a node until it answers, published weights aside, in seconds.
    """

    count: int
    cpus: float
    gpus: float
    memory_mb: int
    kept_prompts: int = 0
    start_s: float = _START_S


@dataclass(frozen=True, slots=True)
class PolicyBackend(Generic[S]):
    """A way of serving policies."""

    settings: type[S]
    """The class of its options, a frozen dataclass that forbids extra keys: ``policy.options`` of a recipe."""
    processes: Callable[[S], ServerProcesses]
    """Says what it will start, for the resource plan."""
    memory: Callable[[PolicySettings, S, ModelSize, int], tuple[MemoryPart, ...]]
    """Says what one of its servers holds for a model of a known size of which so many parameters are published; nothing
    where it starts none."""
    preflight: Callable[[PolicySettings, S], list[Check]]
    """Looks before a run whether this machine can serve."""
    serve: Callable[[Serving, S], AbstractContextManager[PolicyService]]
    """A context manager that starts the servers, watches them and ends them."""
    planes: tuple[str, ...] = ("file",)
    """The data planes by which its servers take weights, out of ``file`` and ``broadcast``."""
    names_of_files: bool = False
    """Whether its servers know a whole model's tensors by their names in its files (``policy.checkpoint_names``)."""
    reached: Callable[[S], list[Check]] = reached_anywhere
    """Says before a run that joins a cluster what keeps rollout workers on other nodes from its servers."""


def backend_of(settings: PolicySettings) -> tuple[PolicyBackend[Any], Any]:
    """Return the backend that ``settings`` name, and its options; raise ``ValueError`` where either is wrong."""
    try:
        backend = BACKENDS.find(settings.backend)
    except ValueError as error:
        raise ValueError(f"policy.backend: {error}") from error
    if settings.publication not in backend.planes:
        takes = " or ".join(backend.planes)
        raise ValueError(
            f"policy.publication: expected {takes}, by which policy.backend {settings.backend!r} takes weights, found "
            f"{settings.publication!r}"
        )
    return backend, read_options(backend.settings, settings.options, "policy.options")


def with_options(settings: PolicySettings) -> PolicySettings:
    """Return ``settings`` with every option of their backend; raise ``ValueError`` as ``backend_of`` does."""
    return replace(settings, options=backend_of(settings)[1])


BACKENDS: Registry[PolicyBackend[Any]] = Registry(
    "policy backend",
    PolicyBackend,
    "waymark.policy_backends",
    {"torch": "policy.torch_backend:TORCH", "vllm": "policy.vllm.backend:VLLM"},
)
"""Policy backends by name."""
