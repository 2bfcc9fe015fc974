"""The learner as the controller sees it: one method for each thing that it does.

Owns the calls to the learner's processes and what their failures mean. Invariants: a call ends once nothing got done
for ``run.learner_timeout_s``; what an error says of its cause is kept. Ids and names of checkpoints go in, records come
out. Imports no torch: the learner's own processes do.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import ray
from ray import ObjectRef
from ray.actor import ActorHandle
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.placement_group import PlacementGroup, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from safetensors import SafetensorError

from cluster.errors import ProcessLost, RunStopped
from cluster.learner_actor import HEADWAY, SENDING, LearnerActor
from cluster.node_watch import NodeWatch
from cluster.placement import LEARNER, Demand, demands
from cluster.recipe.recipe import Recipe
from cluster.run_folder.durable import put_folder, scratch_folder
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.policy_folder import write_checksums
from learner.errors import CheckpointError, NoBetterThanClock, RankError
from learner.headway import Headway
from learner.metrics import ActorUpdate, CloneUpdate, CriticMetrics, CriticsUpdate
from policy.data_planes import WeightSender
from policy.published_weights import PublishedWeights
from policy.ray_client import RayWeightSender
from replay.perplexity import Kept, ScoredEpisode
from replay.shards import ShardError
from telemetry import meter, table

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")
_LOOK_S = 2.0
"""Fixed: how often the learner is asked how far it is, and how long for an answer."""
_FETCH_S = 60.0
"""Fixed: an answer that is there is numbers, and comes at once."""
_A_PLACE = 0.001
"""Fixed: Ray gives no place to what asks for nothing."""
_DEAD = "The actor is dead because "
_REFUSED = "ValueError: "
"""What a learner is built with that it cannot have: with processes started afresh it would be no other."""
_GUESSES = ("Some common causes include", "There are some potential root causes")
_SHORT_OF_MEMORY = ("OUT_OF_MEMORY", "OutOfMemory", "out of memory", "low on memory", "OOM", "SIGKILL")


class LearnerClient:
    """Asks the learner in the processes ``ranks``, which work in the run folder; all are asked, the first one answers.

    ``timeout_s`` limits how long it may get nothing done; ``on_headway`` is called with its headway while it works.
    Every method raises ``ProcessLost`` where the process died or took too long, and ``RunStopped`` where the learner
    cannot read or write what it must.
    """

    def __init__(
        self,
        ranks: Sequence[ActorHandle],
        folders: RunFolders,
        timeout_s: float,
        on_headway: Callable[[Headway], None] = lambda headway: None,
    ) -> None:
        self._ranks = ranks
        self._folders = folders
        self._timeout_s = timeout_s
        self._on_headway = on_headway

    def ready(self) -> None:
        """Wait until the models are built."""
        self._call(LearnerActor.start)

    def record(self, files: Mapping[str, int]) -> None:
        """Let what lies in these shards and files of labels count before all else; see ``ReplayBuffer.record``."""
        self._call(LearnerActor.record, files)

    def bring(self, shards: Iterable[str]) -> None:
        """Let the learner's node have these shards, by their names; they are there already where all see one folder."""
        if self._folders.stored is not None:
            names = sorted(shards)
            self._call(LearnerActor.bring, names)

    def clone(self, episode_ids: Sequence[str]) -> CloneUpdate:
        """Clone the successful and faulty demonstrations alike."""
        return self._call(LearnerActor.clone, episode_ids)

    def pretrain(self, critic: str, episode_ids: Sequence[str]) -> CriticMetrics:
        """Teach one critic on demonstrations before the first phase."""
        return self._call(LearnerActor.pretrain, critic, episode_ids)

    def take_critics(self) -> tuple[str, ...]:
        """Take the critics of the policy folder that were taught what this run's are; return their names."""
        return self._call(LearnerActor.take_critics)

    def score(self, episode_ids: Sequence[str]) -> list[ScoredEpisode]:
        """Return every action's token log-probabilities under the current policy."""
        return self._call(LearnerActor.score, episode_ids)

    def update_critics(
        self, rollout_ids: Sequence[str], earlier_ids: Sequence[str], phase: int, seed: int
    ) -> CriticsUpdate:
        """Train the critics on a phase's episodes and on earlier ones, whole."""
        return self._call(LearnerActor.update_critics, rollout_ids, earlier_ids, phase, seed)

    def update_actor(self, rollout_ids: Sequence[str], replayed: Sequence[Kept], phase: int, seed: int) -> ActorUpdate:
        """Train the actor on the same data with the critics as they are (MiRA Alg. 1)."""
        return self._call(LearnerActor.update_actor, rollout_ids, replayed, phase, seed)

    def ask(self, critic: str, episode_ids: Sequence[str]) -> dict[str, list[float]]:
        """Return for each episode one critic's answers for its states."""
        return self._call(LearnerActor.ask, critic, episode_ids)

    def ask_first(self, critic: str, episode_ids: Sequence[str], state_files: Sequence[str]) -> dict[str, float]:
        """Return one critic's answer in [0, 1] for the first state of each task of these episodes and files.

        ``state_files`` are names of ``replay.first_states``; an episode's first state counts before one in a file.
        """
        return self._call(LearnerActor.ask_first, critic, episode_ids, state_files)

    def publish(self, version: int) -> PublishedWeights:
        """Write the actor's weights as one version and return what names them."""
        folder = self._folders.address(self._folders.weights)
        weights = self._call(LearnerActor.publish, folder, version)
        if self._folders.stored is not None:
            self._folders.stored.bring({f"{self._folders.weights.name}/{Path(weights.path).name}": weights.checksum})
        return weights

    @property
    def sender(self) -> WeightSender:
        """The first rank as a sender of the weights that it wrote, which it is while other calls run, too."""
        return RayWeightSender(self._ranks[0])

    def probe(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the learner's own token log-probabilities of one action, to compare with a server's."""
        return self._call(LearnerActor.probe, prompt_ids, action_ids)

    def export(self, *, critics: str) -> None:
        """Write the policy as it is now to ``OUT/trained``, with its critics in a named type, whole or not at all."""
        scratch = scratch_folder(self._folders.trained)
        address = self._folders.address(scratch)
        files = self._call(LearnerActor.export, address, critics)
        if self._folders.stored is not None:
            self._folders.stored.bring(files)
        write_checksums(scratch)
        put_folder(scratch, self._folders.trained)

    def save(self, name: str) -> None:
        """Write a checkpoint."""
        address = self._folders.address(self._folders.checkpoint(name))
        files = self._call(LearnerActor.save, address)
        if self._folders.stored is not None:
            self._folders.stored.bring(files)

    def load(self, name: str) -> None:
        """Go back to a checkpoint."""
        address = self._folders.address(self._folders.checkpoint(name))
        self._call(LearnerActor.load, address)

    def _call(
        self, asked: Callable[Concatenate[LearnerActor, Asked], Answer], *args: Asked.args, **named: Asked.kwargs
    ) -> Answer:
        """Return what the first rank answers to a method of its actor, which all are asked."""
        method = asked.__name__
        replies = [getattr(rank, method).remote(*args, **named) for rank in self._ranks]
        try:
            failed = [(rank, error) for rank, error in self._answered(method, replies) if error is not None]
            if not failed:
                answer: Answer = ray.get(replies[0], timeout=_FETCH_S)
                return answer
        except RayError as lost:
            failed = [(0, lost)]
        rank, first = min(failed, key=lambda found: _is_of_another(found[1]))
        meaning = self._meaning(method, rank, first)
        raise meaning from (None if meaning is first else first)

    def _meaning(self, method: str, rank: int, error: RayError) -> Exception:
        """Return what the run is told of a rank's error."""
        alone = len(self._ranks) == 1
        if isinstance(error, RayTaskError):
            reason = error.cause
            if isinstance(reason, NoBetterThanClock):
                return RunStopped(str(reason))
            if isinstance(reason, OSError | SafetensorError | CheckpointError | ShardError | LookupError):
                where = method if alone else f"{method} on rank {rank}"
                return RunStopped(
                    f"the learner's {where} failed: {type(reason).__name__}: {reason}; free space or restore what "
                    "that names, and start the same command again to go on"
                )
            if not alone:
                error.add_note(f"(rank {rank} of the learner)")
            return error
        who = "process" if alone else f"rank {rank}"
        cause = cause_of_death(str(error))
        if isinstance(error, RayActorError) and error.actor_init_failed and cause.startswith(_REFUSED):
            return RunStopped(f"the learner cannot be built: {cause.removeprefix(_REFUSED)}")
        advice = "; lower learner.micro_batch_tokens" if any(word in cause for word in _SHORT_OF_MEMORY) else ""
        return ProcessLost(f"the learner's {who} ended during {method}: {cause}{advice}")

    def _answered(self, method: str, replies: Sequence[ObjectRef]) -> list[tuple[int, RayError | None]]:
        """Return each rank that has answered and what failed of it, once all have, or one failed.

        As long as the learner makes headway, that may take its time.
        """
        found: dict[int, RayError | None] = {}
        heard, since = Headway(), time.monotonic()
        while len(found) < len(replies):
            waiting = [reply for rank, reply in enumerate(replies) if rank not in found]
            one_failed = any(found.values())
            ready, _ = ray.wait(waiting, num_returns=len(waiting), timeout=min(_LOOK_S, self._timeout_s))
            found |= {replies.index(reply): _error(reply) for reply in ready}
            if one_failed:
                break  # the others had a moment to fail of it, or to say what really happened
            if ready:
                continue
            headway = self._headway()
            if headway is not None and headway != heard:
                heard, since = headway, time.monotonic()
                self._on_headway(headway)
                meter.record(table.UPDATES, headway.done, state="done")
                meter.record(table.UPDATES, headway.planned, state="planned")
                meter.record(table.LEARNED_TOKENS, headway.tokens)
            elif time.monotonic() - since > self._timeout_s:
                raise ProcessLost(
                    f"the learner's {method} made no headway for longer than run.learner_timeout_s "
                    f"({self._timeout_s:g} s); raise it or give the learner less to do at once"
                )
        return sorted(found.items())

    def _headway(self) -> Headway | None:
        """Return how far the learner is; None where it does not say so now, as while its models are built."""
        reply: ObjectRef = self._ranks[0].headway.remote()
        try:
            ready, _ = ray.wait([reply], timeout=min(_LOOK_S, self._timeout_s))
            return ray.get(reply, timeout=_FETCH_S) if ready else None
        except RayError:
            return None  # what is wrong, the running call says


def start_learner(
    recipe: Recipe, model: str, folders: RunFolders, on_headway: Callable[[Headway], None], nodes: NodeWatch
) -> LearnerClient:
    """Start the learner's processes and wait until they have nodes; ``model`` is a policy folder.

    ``on_headway`` is called with the headway. Raises ``RunStopped`` where no node comes for it.
    """
    demand, limit_s = demands(recipe)[LEARNER], recipe.run.learner_timeout_s
    settings = replace(recipe.learner, seed=recipe.learner.seed + recipe.run.seed)
    remote: Any = ray.remote
    make = remote(
        concurrency_groups={HEADWAY: 1, SENDING: 1},
        **demand.options,
        runtime_env={"env_vars": {"OMP_NUM_THREADS": str(settings.threads)}},
    )(LearnerActor)
    given = (settings, folders.address(model), folders.address(folders.out), recipe.replay.judges)
    name = f"waymark-{recipe.run.name}-{secrets.token_hex(3)}-learner"
    if settings.ranks == 1:
        ranks = [make.options(name=f"{name}-0").remote(*given, mark=folders.mark)]
    else:
        places, meeting = _places(recipe, demand, nodes), str(folders.meeting().resolve())
        at = [PlacementGroupSchedulingStrategy(places, rank) for rank in range(settings.ranks)]
        ranks = [
            make.options(name=f"{name}-{rank}", scheduling_strategy=place).remote(
                *given, rank, meeting, limit_s, folders.mark
            )
            for rank, place in enumerate(at)
        ]
    nodes.settled(LEARNER, settings.ranks)
    return LearnerClient(ranks, folders, limit_s, on_headway)


def _places(recipe: Recipe, demand: Demand, nodes: NodeWatch) -> PlacementGroup:
    """Return a place for each rank, together where there is room; raise ``RunStopped`` where there is none in time."""
    ranks, limit_s = recipe.learner.ranks, recipe.run.node_timeout_s
    places = placement_group([demand.bundle or {"CPU": _A_PLACE}] * ranks, strategy="PACK")
    began = time.monotonic()
    while not places.wait(timeout_seconds=_LOOK_S):
        nodes.group_waits(LEARNER, ranks)
        if time.monotonic() - began > limit_s:
            raise RunStopped(
                f"no place for learner.ranks ({ranks}) with {demand} each came free within run.node_timeout_s "
                f"({limit_s:g} s); ask for fewer, or add machines"
            )
    nodes.group_waits(LEARNER, 0)
    return places


def _error(reply: ObjectRef) -> RayError | None:
    """Return what a rank that has answered failed of, or None."""
    try:
        ray.get(reply, timeout=_FETCH_S)
    except RayError as error:
        return error
    return None


def _is_of_another(error: RayError) -> bool:
    """Return whether a rank failed because another one did: that one's error tells more."""
    return isinstance(error, RayTaskError) and isinstance(error.cause, RankError | RuntimeError)


def cause_of_death(said: str) -> str:
    """Return the part of Ray's message about a dead actor that says why: its exit, or the error it was built with.

    Ray puts the actor's identity before the cause, and guesses behind it.
    """
    lines = [line for line in said.strip().splitlines() if line.strip()]
    if not lines:
        return "for a reason that Ray does not know"
    if lines[0].startswith("The actor died because of an error raised in its creation task"):
        traceback = max((at for at, line in enumerate(lines) if line[0].isspace()), default=0)
        return "\n".join(lines[traceback + 1 :]) or lines[0]
    at = next((at for at, line in enumerate(lines) if line.startswith(_DEAD)), 0)
    cause = " ".join(line.strip() for line in lines[at:]).removeprefix(_DEAD)
    for guess in _GUESSES:
        cause = cause.partition(guess)[0]
    return cause.strip().rstrip(".")
