"""The processes that play episodes: rollout workers for each kind of environment, and what the kind's service runs.

Owns their start and their end. Invariants: workers of a kind start with the first episode that needs them; what was
started is stopped, the workers before the service that they play on; an episode that a shard holds is not played again;
a run in a store is told of each shard when its episode is acknowledged, however the playing ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from cluster.display.run_display import RunDisplay
from cluster.errors import RunStopped
from cluster.first_pages import FirstPrompts, first_states_stage, open_first_states, tasks_to_open
from cluster.milestones.writing import WritingLimits, write_for
from cluster.placement import demands
from cluster.recipe.recipe import Recipe
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.stage_results import FirstStatesOpened, MilestonesWritten
from environments.hosted import Hosted, hosted_on
from environments.kinds import KINDS, Service, no_service
from judges.kinds import Judges
from policy.client import PolicySource
from policy.formats import format_of
from policy.tokenizer import TextTokenizer
from records.episodes import Task
from records.failures import EpisodeFailed
from records.roles import Role
from records.stores.working_copy import bring
from replay.buffer import ReplayBuffer
from rollout_workers.ahead import RolloutsAhead
from rollout_workers.budget import FailureBudgetExceeded
from rollout_workers.leases import Journal, no_journal
from rollout_workers.nodes import STEADY, Nodes
from rollout_workers.pool import RolloutPool, RolloutStopped, tell_nobody
from rollout_workers.results import RolloutCounts, RolloutResult
from rollout_workers.spec import EpisodeSpec, WorkerConfig
from telemetry import meter

_Done = TypeVar("_Done")


class Rollouts:
    """Context manager over everything that plays episodes; needs a running Ray.

    ``judges`` judge the episodes, ``policy`` says how workers reach the policy, ``tokenizer`` is the path of a policy
    folder, ``nodes`` knows who waits for a node.

    ``version`` is that of the weights that must decide, as published last; None takes whichever are served.
    """

    def __init__(
        self,
        recipe: Recipe,
        folders: RunFolders,
        judges: Judges,
        *,
        policy: PolicySource,
        tokenizer: str,
        nodes: Nodes = STEADY,
    ) -> None:
        self._nodes = nodes
        self._recipe = recipe
        self._folders = folders
        self._judges = judges
        self._policy = policy
        self._tokenizer = tokenizer
        self.version: int | None = None
        self._stack = ExitStack()
        self._services: dict[str, Service[Any]] = {}
        self._pools: dict[str, RolloutPool] = {}

    def __enter__(self) -> Rollouts:
        """Start what the run's environment needs beside its workers, so that what is missing is told at once."""
        self._service(self._recipe.run.environment)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers, then what they played on."""
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
        self._stack.__exit__(kind, error, trace)

    def play(
        self,
        specs: Sequence[EpisodeSpec],
        buffer: ReplayBuffer,
        display: RunDisplay,
        *,
        environment: str,
        journal: Journal = no_journal,
    ) -> RolloutResult:
        """Play the episodes that no shard holds yet, on the workers of one kind of environment.

        Raises:
            RunStopped: too much failed, or nothing moved any more; finished episodes are on disk.
        """
        missing = _missing(specs, buffer, self.version)
        kept = len(specs) - len(missing)

        def show(now: RolloutCounts) -> None:
            display.update(
                kept + now.completed + now.failed,
                total=len(specs),
                judged=now.completed,
                succeeded=now.successes,
                lost=now.failed,
                steps=now.env_steps,
            )

        with _stops():
            result = self._pool(environment).run(missing, show, journal)
        self._bring()
        return result

    @contextmanager
    def ahead(
        self,
        specs: Sequence[EpisodeSpec],
        buffer: ReplayBuffer,
        display: RunDisplay,
        *,
        environment: str,
        journal: Journal = no_journal,
    ) -> Iterator[RolloutsAhead]:
        """Play as ``play`` does while the block works, and finish what is being played at its end.

        Raises:
            RunStopped: as ``play`` does, at the end of the block.
        """
        missing = _missing(specs, buffer, self.version)

        def show(now: RolloutCounts) -> None:
            display.ahead(len(specs) - len(missing) + now.completed + now.failed, len(specs))

        with _stops(), RolloutsAhead(self._pool(environment), missing, show, journal) as begun:
            yield begun
        self._bring()

    def _bring(self) -> None:
        """Have the shards of other nodes here."""
        if self._folders.stored is not None:
            self._folders.stored.bring_acknowledged()

    def write_milestones(self, tasks: Sequence[Task]) -> MilestonesWritten:
        """Open the tasks' first pages, while nothing is played, and let the recipe's model write milestones.

        Raises:
            RunStopped: the environment does not start, or what language models may cost is spent.
        """
        limits = WritingLimits(self._recipe.milestones, self._recipe.rollout)
        model = self._judges.language_model(self._recipe.milestones.model)
        return self._on_a_host(lambda running: write_for(tasks, running, model, limits))

    def open_first_states(self, tasks: Sequence[Task], display: RunDisplay) -> FirstStatesOpened:
        """Open the first pages of those of ``tasks`` that no file has, while nothing is played; see ``first_pages``.

        Raises:
            RunStopped: the environment does not start, or too many pages do not open; those that did are on disk.
        """
        policy, folder = self._recipe.policy, self._folders.episodes
        prompts = FirstPrompts(
            format_of(policy),
            TextTokenizer.load(bring(self._tokenizer)),
            policy,
            self._judges.of_milestones(self._recipe.rollout.milestone_judge),
            self._recipe.rollout,
            self._recipe.run.seed,
        )
        left = tasks_to_open(tasks, folder)

        def on_progress(opened: int, absent: int) -> None:
            display.update(len(tasks) - len(left) + opened + absent, total=len(tasks), lost=absent)

        absent: dict[str, str] = {}
        if left:
            try:
                absent = self._on_a_host(lambda running: open_first_states(left, running, prompts, folder, on_progress))
            except FailureBudgetExceeded as error:
                raise RunStopped(
                    f"the first pages of training tasks, which curriculum.value_band asks about: {error}; pages that "
                    "opened are kept, start the same command again to go on"
                ) from error
        return first_states_stage(absent, folder)

    def _on_a_host(self, work: Callable[[Hosted], Coroutine[Any, Any, _Done]]) -> _Done:
        """Return what comes of ``work`` on a host of the driver's own, of the run's environment."""
        name, recipe = self._recipe.run.environment, self._recipe

        async def done() -> _Done:
            with self._here(name) as service:
                async with hosted_on(name, recipe.environment_settings(name), service, recipe.browser) as running:
                    return await work(running)

        try:
            return asyncio.run(done())
        except EpisodeFailed as error:
            raise RunStopped(f"{error}. What to do: {error.failure.code.remedy}") from error

    def rest(self) -> None:
        """Let go of the workers that are not needed while nothing is played; see ``rollout.workers_min``."""
        for pool in self._pools.values():
            pool.rest()

    def retire(self, environment: str) -> None:
        """End the workers of one kind of environment, when no further episode needs them."""
        if environment in self._pools:
            self._pools.pop(environment).close()

    def _pool(self, environment: str) -> RolloutPool:
        if environment not in self._pools:
            demand = demands(self._recipe)[Role.WORKER]
            self._pools[environment] = RolloutPool(
                WorkerConfig(
                    shard_dir=self._folders.address(self._folders.episodes),
                    tokenizer=self._tokenizer,
                    environment=environment,
                    policy=self._policy,
                    policy_settings=self._recipe.policy,
                    settings=self._recipe.rollout,
                    browser=self._recipe.browser,
                    options=self._recipe.environment_settings(environment),
                    connection=self._service(environment).connection,
                    judges=self._judges,
                    screenshot_dir=self._folders.address(self._folders.screenshots),
                    plan_dir=str(self._folders.plans),
                    run=self._recipe.run.name,
                    metrics=meter.run_name(),
                    memory_mb=demand.memory_mb,
                    resources=demand.resources,
                    mark=self._folders.mark,
                ),
                self._service(environment).admission,
                self._nodes,
                tell_nobody if self._folders.stored is None else self._folders.stored.acknowledge,
            )
        return self._pools[environment]

    def _service(self, environment: str) -> Service[Any]:
        """Return what the driver runs for one kind of environment, nothing where each node does; start it once."""
        if environment not in self._services:
            kind, settings = KINDS.find(environment), self._recipe.environment_settings(environment)
            service = no_service(settings) if kind.each_node else kind.service(settings)
            self._services[environment] = self._stack.enter_context(service)
        return self._services[environment]

    @contextmanager
    def _here(self, environment: str) -> Iterator[Service[Any]]:
        """Run what hosts in the driver's own process need of one kind of environment."""
        kind = KINDS.find(environment)
        if not kind.each_node:
            yield self._service(environment)
            return
        with kind.service(self._recipe.environment_settings(environment)) as service:
            yield service


def _missing(specs: Sequence[EpisodeSpec], buffer: ReplayBuffer, version: int | None) -> list[EpisodeSpec]:
    """Return the episodes that no shard holds, to be decided by ``version``."""
    buffer.refresh()
    return [replace(spec, version=version) for spec in specs if spec.episode_id not in buffer]


@contextmanager
def _stops() -> Iterator[None]:
    """Say of a pool that stopped how the run goes on."""
    try:
        yield
    except RolloutStopped as error:
        raise RunStopped(f"{error}; finished episodes are kept, start the same command again to go on") from error
