"""The rollout worker: plays leased episodes in its own browser and answers once they are durable.

Owns everything inside one worker process: the browser and its slots, the policy client, the shard
writer, and the guard that ends the browser with the process. Invariants: a lease is answered exactly
once, with a durable shard or a typed failure; no error of an episode leaves the worker as an
exception, which Ray would take for the worker's death; an episode during which the process stood still is
not scored; ``__init__`` cannot fail, so that a restarted worker always comes back and ``start`` can say
what is wrong. ``worker_group`` makes it a Ray actor; this module imports neither ray nor torch.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from environments.browser.owned_processes import kill, kill_owned, mark_children, orphans, start_guard, unmark_children
from environments.kinds import EnvironmentHost, make_host
from judges.interface import MilestoneJudge, PostponingJudge, TrajectoryJudge
from plugs.registry import load
from policy.client import PolicyClient
from policy.formats import format_of
from policy.potential import PotentialModel, critic_for
from policy.prompts import PromptFormat
from policy.tokenizer import TextTokenizer
from records import failure_codes as codes
from records.episodes import Source, newest_version
from records.failures import EpisodeFailed, Failure
from records.stores.working_copy import bring, local_path
from records.supervision import supervised
from rollout_workers.agent import Agent, DecisionWriter, PolicyAgent
from rollout_workers.episode import Played, play, settle
from rollout_workers.leases import Lease
from rollout_workers.loop_lag import LoopLag
from rollout_workers.results import Completed, EpisodeAnswer, EpisodeSummary
from rollout_workers.screenshots import ScreenshotFolder
from rollout_workers.scripted_agent import ScriptedAgent, demonstrator
from rollout_workers.shard_writer import ShardWriter, require_run_folder
from rollout_workers.slots import Slots
from rollout_workers.spec import EpisodeSpec, WorkerConfig
from telemetry import meter, table

if TYPE_CHECKING:
    from judges.llm.interface import LanguageModel

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """A worker's sign of life.

    ``failure`` is set when it could not start; ``loop_lag_s`` is the longest that its event loop kept something waiting
    since the last sign of life, in seconds.
    """

    pid: int
    orphans_killed: int
    loop_lag_s: float = 0.0
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class _Equipment:
    """What a worker plays with; ``model`` and ``critic`` are for planning."""

    slots: Slots
    tokenizer: TextTokenizer
    format: PromptFormat
    policy: PolicyClient | None
    milestones: MilestoneJudge
    model: LanguageModel | None
    critic: PotentialModel | None


class RolloutWorker:
    """One worker process; every method but ``__init__`` runs on its event loop."""

    def __init__(self, config: WorkerConfig, name: str) -> None:
        self._config = config
        self._name = name
        self._orphans_killed = 0
        self._mark = ""
        self._guard: IO[bytes] | None = None
        self._equipment: _Equipment | None = None
        settings = config.settings
        self._lag = LoopLag(settings.loop_lag_limit_s)
        self._shards = ShardWriter(
            config.shard_dir,
            linger_s=settings.shard_linger_s,
            deadline_s=settings.shard_deadline_s,
            mark=config.mark,
        )
        self._service: Any = None
        self._screenshots = ScreenshotFolder(local_path(config.screenshot_dir)) if config.screenshot_dir else None

    async def ping(self) -> str:
        """Answer; the actor manager asks this of workers that it takes for dead."""
        return "pong"

    async def apply(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call ``func(self, …)`` and await its result; the actor manager sends every call this way."""
        result = func(self, *args, **kwargs)
        return await result if inspect.isawaitable(result) else result

    async def place(self) -> tuple[str, str]:
        """Return Ray's ids of the node that this worker is on, and of its process."""
        node, process = (load(f"rollout_workers.node_services:{name}") for name in ("this_node", "this_process"))
        return cast(Callable[[], str], node)(), cast(Callable[[], str], process)()

    async def start(self, service: Any = None) -> WorkerHealth:
        """Build everything once; return the health, with ``failure`` set where something is missing.

        ``service`` is the actor of this node that hosts connect to, where the kind of environment has one on each.
        """
        self._service = service
        if self._equipment is None:
            built = await self._contained(self._build())
            if isinstance(built, Failure):
                return self._health(built)
            self._equipment = built
        return self._health(None)

    async def heartbeat(self) -> WorkerHealth:
        """Return a sign of life."""
        return self._health(None)

    async def play(self, lease: Lease, spec: EpisodeSpec) -> EpisodeAnswer:
        """Play one leased episode as soon as a slot is free; the answer comes when it is durable."""
        end = await self._contained(self._play(spec))
        if isinstance(end, Failure):
            meter.record(table.ATTEMPT_FAILURES, **self._played(spec), kind=end.kind, code=end.code.name)
        return EpisodeAnswer(lease, end, spec.grant)

    async def stop(self) -> None:
        """Close the browser and make sure that none of its processes is left."""
        self._lag.stop()
        if self._equipment is not None:
            await self._equipment.slots.close()
            self._equipment = None
        if self._mark:
            await asyncio.to_thread(kill_owned, self._mark, self._config.browser.close_timeout_s)
            unmark_children()
            self._mark = ""
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    async def _build(self) -> _Equipment:
        config, planning = self._config, self._config.settings.planning
        await asyncio.to_thread(require_run_folder, config.mark)
        if config.metrics:
            cast(Callable[[str], None], load("telemetry.ray_sink:install"))(config.metrics)
        self._orphans_killed += await asyncio.to_thread(lambda: kill(orphans()))
        self._mark = mark_children()
        if self._guard is None:
            self._guard = await asyncio.to_thread(start_guard, self._mark, config.settings.start_timeout_s)
        tokenizer = await asyncio.to_thread(lambda: TextTokenizer.load(bring(config.tokenizer)))
        policy = None
        if config.policy is not None:
            policy = cast(Callable[..., PolicyClient], load(config.policy.factory))(**config.policy.options)
        judge = config.judges.of_trajectories(config.settings.trajectory_judge)
        if isinstance(judge, PostponingJudge):
            judge = judge.postponing()
        milestones = config.judges.of_milestones(config.settings.milestone_judge)
        model = config.judges.language_model(planning.model) if planning.model else None
        critic = None
        if planning.potential:
            critic = await asyncio.to_thread(
                critic_for, Path(planning.potential).expanduser(), local_path(config.tokenizer)
            )
        slots = Slots(
            partial(self._host, judge),
            config.settings.contexts_per_worker,
            close_deadline_s=config.browser.close_timeout_s,
        )
        await slots.start()
        self._lag.start()
        return _Equipment(slots, tokenizer, format_of(config.policy_settings), policy, milestones, model, critic)

    async def _host(self, judge: TrajectoryJudge) -> EnvironmentHost:
        """Return a new host, connected with what its node runs now."""
        config, connection = self._config, self._config.connection
        if self._service is not None:
            ask = cast(Callable[..., Awaitable[object]], load("rollout_workers.node_services:connection_of"))
            connection = await ask(self._service, config.settings.start_timeout_s)
        return make_host(config.environment, config.options, connection, config.browser, judge)

    async def _play(self, spec: EpisodeSpec) -> Completed:
        """Return the judged episode once it is durable; raise ``EpisodeFailed`` where it has no verdict."""
        equipment, stalls = self._equipment, self._lag.stalls
        if equipment is None:
            raise EpisodeFailed(Failure(codes.WORKER_NOT_STARTED, f"{self._name} has no browser yet"))
        writer = DecisionWriter(equipment.format, equipment.tokenizer, spec, self._config.policy_settings)
        agent = self._agent(equipment, spec, writer)
        async with equipment.slots.borrow() as (slot, env):
            slot.note(Failure(codes.INTERRUPTED))  # stands unless the episode comes to an end
            played: Played = await play(
                env,
                agent,
                spec,
                self._config.settings,
                milestones=equipment.milestones,
                writer=writer,
                worker=self._name,
                environment=self._config.environment,
                save_screenshot=self._screenshots.save if self._screenshots else None,
            )
            failure = played.failure or self._stalled_since(stalls)
            # What an episode was granted goes back with its answer: by then it must have left nothing behind.
            slot.note(failure, close=failure is not None and spec.grant is not None)
        if failure is None:
            played = await settle(played, spec.task)  # the slot is free: whoever is asked now keeps no browser waiting
            failure = played.failure
        if failure is not None:
            raise EpisodeFailed(failure)
        began = time.perf_counter()
        shard = await self._shards.add(played.trajectory)
        self._measure(played, spec, time.perf_counter() - began)
        return Completed(EpisodeSummary.of(played), shard)

    def _measure(self, played: Played, spec: EpisodeSpec, shard_s: float) -> None:
        environment, episode = self._config.environment, played.trajectory
        meter.record(table.SHARD_SECONDS, shard_s, environment=environment)
        meter.record(table.JUDGE_SECONDS, played.judge_s, environment=environment)
        meter.record(table.EPISODE_SECONDS, episode.seconds, **self._played(spec))
        outcome = "success" if episode.outcome == 1.0 else "failure"
        meter.record(table.EPISODES, **self._played(spec), end=str(episode.termination), outcome=outcome)
        if spec.source is Source.ROLLOUT:
            staleness = newest_version(spec.source, spec.phase) - episode.policy_version
            meter.record(table.ROLLOUT_STEPS, len(episode.steps), environment=environment, staleness=str(staleness))

    def _played(self, spec: EpisodeSpec) -> dict[str, str]:
        return {"environment": self._config.environment, "source": spec.source}

    def _stalled_since(self, stalls: int) -> Failure | None:
        if self._lag.stalls == stalls:
            return None
        limit_s = self._config.settings.loop_lag_limit_s
        detail = f"{self._name} stood still for more than {limit_s:g} s: stopped, out of memory, or short of CPU"
        return Failure(codes.WORKER_STALLED, detail)

    def _agent(self, equipment: _Equipment, spec: EpisodeSpec, writer: DecisionWriter) -> Agent:
        limits, prompts = writer.limits, (writer.prompt_format, writer.tokenizer)
        if spec.source is Source.DEMONSTRATION:
            return ScriptedAgent(demonstrator(spec), *prompts, spec, limits=limits)
        if equipment.policy is None:
            detail = f"episode {spec.episode_id} needs a policy, and the worker was configured without one"
            raise EpisodeFailed(Failure(codes.NO_POLICY, detail))
        top_p = self._config.settings.top_p
        agent = PolicyAgent(equipment.policy, *prompts, spec, top_p=top_p, limits=limits)
        plans = self._config.settings.planning.mode != "none" and spec.source is Source.EVALUATION
        return self._planning(equipment, agent, spec) if plans else agent

    def _planning(self, equipment: _Equipment, agent: PolicyAgent, spec: EpisodeSpec) -> Agent:
        """Return the agent of an episode that is planned: a language model, or the policy, watched."""
        # Their state is pydantic's, which a worker that plans nothing is to do without.
        from rollout_workers.planning.model_agent import ModelAgent
        from rollout_workers.planning.policy_agent import WatchedPolicyAgent
        from rollout_workers.planning.progress import CriticProgress
        from rollout_workers.planning.state import PlanFolder

        planning = self._config.settings.planning
        folder = PlanFolder(Path(self._config.plan_dir)) if self._config.plan_dir else None
        progress = CriticProgress(equipment.critic, agent.writer) if equipment.critic is not None else None
        if equipment.model is None:
            return WatchedPolicyAgent(agent, spec, planning, progress=progress, folder=folder)
        return ModelAgent(equipment.model, agent.writer, planning, progress=progress, folder=folder)

    async def _contained(self, work: Awaitable[T]) -> T | Failure:
        """Return what ``work`` returns, or what went wrong in it, typed; nothing is raised but cancellation."""
        done = await supervised(work)
        if not isinstance(done, Exception | asyncio.CancelledError):
            return done
        if isinstance(done, asyncio.CancelledError):
            return Failure(codes.CANCELLED)
        if isinstance(done, EpisodeFailed):
            return done.failure
        logger.error("%s: unexpected error", self._name, exc_info=done)
        where = traceback.extract_tb(done.__traceback__)[-1]
        detail = f"{type(done).__name__}: {done} ({os.path.basename(where.filename)}:{where.lineno})"
        return Failure(codes.UNEXPECTED, detail)

    def _health(self, failure: Failure | None) -> WorkerHealth:
        return WorkerHealth(
            pid=os.getpid(),
            orphans_killed=self._orphans_killed,
            loop_lag_s=self._lag.take_worst_s(),
            failure=failure,
        )
