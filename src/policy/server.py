"""The policy server: a Ray actor that answers completions from one model.

Owns ``PolicyServer`` and how it is started. It builds everything when it is constructed, so a restart
by Ray is a fresh start; it comes back with the weights that were last published, from the file that names
them, and looks there again when it is asked for a version that it does not serve. The constructor cannot fail:
where nothing could be built, every method raises ``StartFailed``. All generation happens in the ``EngineLoop``'s
thread; the methods only wait for it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import ray
from ray.actor import ActorHandle

from policy.client import Completion, Sampling, WrongVersion
from policy.published_weights import PublishedWeights, current_weights, on_this_node
from policy.server_start import ServerStart
from policy.settings import PolicySettings
from policy.torch_backend import TorchSettings
from records.folder_mark import require_mark
from records.stores.working_copy import bring
from telemetry import meter, ray_sink, table

if TYPE_CHECKING:
    from policy.engine_loop import EngineLoop, EngineStats


_TOKENS = {"prompt": "prompt_tokens", "kept": "cached_tokens", "new": "new_tokens"}


class PolicyServer:
    """Serves the model in ``model_dir``; ``published_file`` names the published weights, if there are any yet.

    It records metrics as ``label`` for the run ``metrics``, none where that is empty, and starts only where it sees the
    ``mark`` of the run folder.
    """

    def __init__(
        self,
        settings: PolicySettings,
        options: TorchSettings,
        model_dir: str,
        published_file: str | None = None,
        label: str = "",
        metrics: str = "",
        mark: str = "",
    ) -> None:
        self._label = label
        self._device = settings.device.partition(":")[0]
        self._measured = dict.fromkeys(_TOKENS, 0)
        self._published_file = published_file
        self._catching_up = asyncio.Lock()

        def build() -> EngineLoop:
            from policy.loading import load_engine  # with torch, which the driver, who only names this class, lacks

            ray_sink.install(metrics)
            require_mark(mark)
            return load_engine(settings, options, str(bring(model_dir)), published_file, on_failure=_end_process)

        self._start = ServerStart(f"policy server {label}".rstrip(), build)

    @property
    def _loop(self) -> EngineLoop:
        """The running engine; raises ``StartFailed`` where there is none."""
        return self._start.built()

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling) -> Completion:
        """Return one completion.

        Raises:
            RequestRefused: this model cannot serve it.
            WrongVersion: the request names weights that are neither served nor published.
        """
        if sampling.version is not None:
            await self._require(sampling.version)
        return await asyncio.wrap_future(self._loop.complete(prompt_ids, sampling))

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the log-probabilities (A,) of ``action_ids`` at temperature 1."""
        return await asyncio.wrap_future(self._loop.score(prompt_ids, action_ids))

    async def devices(self) -> tuple[str, ...]:
        """Return the kind of device that the engine is on, in one process."""
        return (self._device,)

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        """Take new weights between replies and return what names them; a repetition is harmless.

        Raises:
            WeightsRejected: they are not what was published, or did not all come; the old ones go on serving.
        """
        here = await asyncio.to_thread(on_this_node, weights)
        swapped = await asyncio.to_thread(self._loop.load_weights, here)
        return replace(await asyncio.wrap_future(swapped), path=weights.path)

    async def _require(self, version: int) -> None:
        """Make sure that ``version`` is served, from the published weights if need be."""
        async with self._catching_up:
            served = self._loop.stats().version
            if served == version:
                return
            published = await asyncio.to_thread(self._published)
            if published is None or published.version != version:
                found = "nothing" if published is None else f"version {published.version}"
                raise WrongVersion(f"expected version {version}, found {served} served and {found} published")
            await self.load_weights(published)

    def _measure(self, stats: EngineStats) -> None:
        """Record what the engine did since the last time."""
        meter.record(table.SERVED_VERSION, stats.version, server=self._label)
        meter.record(table.SERVER_QUEUE, stats.running, server=self._label, state="running")
        meter.record(table.SERVER_QUEUE, stats.waiting, server=self._label, state="waiting")
        for part, name in _TOKENS.items():
            total = getattr(stats, name)
            meter.record(table.SERVER_TOKENS, total - self._measured[part], server=self._label, part=part)
            self._measured[part] = total

    def _published(self) -> PublishedWeights | None:
        return None if self._published_file is None else current_weights(self._published_file)

    async def stats(self) -> dict[str, int | float | str]:
        """Return version, checksum and totals (``EngineStats``); raise ``EngineStopped`` where the engine is down."""
        return self._loop.stats().to_dict()

    async def ping(self) -> str:
        """Return ``pong``, for whoever watches.

        Raises:
            StartFailed: there is no engine.
            EngineStopped: the engine is down.
        """
        self._measure(self._loop.stats())
        return "pong"

    async def apply(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return ``function(self, ...)``, for the actor manager."""
        return function(self, *args, **kwargs)


def _end_process() -> None:
    """Let Ray start the server afresh: a process whose engine failed can only answer with errors."""
    os._exit(1)


def start_server(
    settings: PolicySettings,
    options: TorchSettings,
    model_dir: str | Path,
    *,
    published_file: str | Path | None = None,
    name: str | None = None,
    label: str = "",
    environment: Mapping[str, str] | None = None,
    resources: Mapping[str, float] | None = None,
    mark: str = "",
) -> ActorHandle[PolicyServer]:
    """Start a server as a Ray actor.

    Args:
        settings: the policy's settings.
        options: the settings of this backend.
        model_dir: policy directory with the model and its tokenizer; this and the next may be addresses in a store.
        published_file: names the published weights; read at every start, may not exist yet.
        name: the name under which other processes find the actor.
        label: what metrics call it.
        environment: environment variables of the server's process, added to the job's.
        resources: custom resources that it declares to Ray.
        mark: that of the run folder, which the server must see; see ``records.folder_mark``.
    """
    actor = ray.remote(PolicyServer).options(
        name=name,
        num_cpus=options.cpus,
        num_gpus=options.gpus,
        memory=options.memory_mb * 2**20,
        resources=dict(resources or {}),
        max_restarts=-1 if options.restarts is None else options.restarts,
        max_task_retries=0,
        runtime_env={"env_vars": {"OMP_NUM_THREADS": str(options.threads), **(environment or {})}},
    )
    published = str(published_file) if published_file else None
    handle: Any = actor.remote(settings, options, str(model_dir), published, label, meter.run_name(), mark)
    return cast("ActorHandle[PolicyServer]", handle)
