"""The actor that owns one server of vLLM.

Owns ``VllmServer``. It builds everything when it is constructed, so a restart by Ray is a fresh start; it comes back
with the weights that were last published. The constructor cannot fail: where vLLM did not come up, every method raises
``StartFailed``. Completions do not pass through it: clients ask the server itself.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from policy.backend import Serving
from policy.client import Sampling, ServerUnreachable
from policy.published_weights import PublishedWeights, current_weights, on_this_node
from policy.server_start import ServerStart
from policy.vllm.api import VllmApi
from policy.vllm.backend import VllmSettings
from policy.vllm.process import VllmProcess
from records.folder_mark import require_mark
from records.stores.working_copy import bring
from telemetry import meter, ray_sink, table


class VllmServer:
    """Serves what ``serving`` names, by vLLM in ``python``; it prints to ``log_file`` and hears who has ``token``.

    It records metrics as ``label`` for the run ``metrics``, none where that is empty.
    """

    def __init__(
        self,
        serving: Serving,
        options: VllmSettings,
        *,
        log_file: Path,
        python: str,
        token: str,
        label: str = "",
        metrics: str = "",
    ) -> None:
        self._label = label
        self._settings = serving.settings
        self._options = options
        self._token = token
        self._adapters = serving.adapter_rank > 0
        self._taking = False

        def build() -> VllmProcess:
            ray_sink.install(metrics)
            require_mark(serving.mark)
            host = listening_host(options.bind, joined=serving.joined)
            process = VllmProcess(
                serving.settings, options, str(bring(serving.model)), python=python, host=host,
                token=token, log_file=log_file, adapter_rank=serving.adapter_rank,
            )  # fmt: skip
            with ExitStack() as unless_up:
                unless_up.callback(process.kill)
                # Ray calls this within its event loop, which cannot run another.
                with ThreadPoolExecutor(1) as thread:
                    limit_s = 2 * options.start_timeout_s + serving.settings.publish_timeout_s  # the sum of its parts'
                    thread.submit(self._come_up, process, serving.published).result(limit_s)
                unless_up.pop_all()
            return process

        self._start = ServerStart(f"policy server {label}".rstrip(), build)

    def _come_up(self, process: VllmProcess, published: str | Path) -> None:
        process.wait(lambda: asyncio.run(self._is_up(process)), self._options.start_timeout_s)
        asyncio.run(self._warm_up(process))
        weights = current_weights(published)
        if weights is not None:
            asyncio.run(self._catch_up(process, weights))

    async def _is_up(self, process: VllmProcess) -> bool:
        try:
            async with asyncio.timeout(self._settings.attempt_timeout_s), self._api(process) as api:
                return await api.is_up()
        except TimeoutError:
            return False

    async def _warm_up(self, process: VllmProcess) -> None:
        """Let the engine compile what a first request needs, before the watch expects answers."""
        async with asyncio.timeout(self._options.start_timeout_s), self._api(process) as api:
            await api.complete([0], Sampling(max_new_tokens=2), stop_ids=(), seeds=False)

    async def _catch_up(self, process: VllmProcess, weights: PublishedWeights) -> None:
        async with asyncio.timeout(self._settings.publish_timeout_s):
            await self._load(process, weights)

    def _api(self, process: VllmProcess) -> VllmApi:
        return VllmApi(process.url, self._token, adapters=self._adapters)

    async def url(self) -> str:
        """Return where the server answers."""
        return self._start.built().url

    async def process_id(self) -> int:
        """Return the server's process id, which is its group's."""
        return self._start.built().process_id

    async def devices(self) -> tuple[str, ...]:
        """Return the kind of device of each worker."""
        async with self._api(self._start.built()) as api:
            return await api.devices()

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        """Take new weights between replies; see ``VllmApi.take_weights``. A repetition is harmless."""
        return await self._load(self._start.built(), weights)

    async def _load(self, process: VllmProcess, weights: PublishedWeights) -> PublishedWeights:
        self._taking = True
        try:
            here = await asyncio.to_thread(on_this_node, weights)
            async with self._api(process) as api:
                taken = await api.take_weights(here, drain_timeout_s=self._options.drain_timeout_s)
                meter.record(table.SERVED_VERSION, taken.version, server=self._label)
            return replace(taken, path=weights.path)
        finally:
            self._taking = False

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the log-probabilities (A,) of ``action_ids`` at temperature 1."""
        async with self._api(self._start.built()) as api:
            return await api.score(prompt_ids, action_ids)

    async def ping(self) -> str:
        """Return ``pong`` where the engine answers; otherwise end this process, so that Ray starts it afresh.

        An engine that takes weights answers afterwards; ``policy.publish_timeout_s`` limits that.

        Raises:
            StartFailed: there is none.
        """
        process = self._start.built()
        if self._taking or await self._engine_answers(process):
            return "pong"
        process.kill()
        os._exit(1)

    async def _engine_answers(self, process: VllmProcess) -> bool:
        try:
            # Before the watch takes the actor for hung: only the actor can end a process that stands still.
            async with asyncio.timeout(self._settings.hang_timeout_s / 2):
                async with self._api(process) as api:
                    await api.served()
        except (TimeoutError, ServerUnreachable):
            return self._taking
        return True


def listening_host(bind: str, *, joined: bool) -> str:
    """Return where a server on this node listens; ``joined`` as in ``Serving``."""
    if bind == "loopback" or (bind == "auto" and not joined):
        return "127.0.0.1"
    import ray

    address: str = ray.util.get_node_ip_address()
    return address
