"""The learner's process: ids in, numbers and file names out.

Owns the process in which torch trains; ``cluster.learner_client`` starts it as a Ray actor. Invariants: trajectories
are read here from their shards and never cross Ray; the actor starts from a policy folder or from a checkpoint and is
otherwise stateless between stages, so a restart loses what the running stage learned since its last bookmark, at most.
Naming the class imports no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import ray

from cluster.run_folder.durable import digests_as_written
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.lock import RunLock
from cluster.run_folder.stored_run import named_by_content
from learner.headway import Headway
from learner.metrics import ActorUpdate, CloneUpdate, CriticMetrics, CriticsUpdate
from learner.settings import LearnerSettings
from policy.published_weights import PublishedWeights
from records.episodes import Trajectory
from records.folder_mark import require_mark
from records.labels import LabelSubject
from records.stores.working_copy import bring, is_address, keep, local_path, working_copy_of
from replay.buffer import ReplayBuffer
from replay.first_states import read_first_states
from replay.labelled import LabelledBuffer
from replay.labels import LabelStore
from replay.perplexity import Kept, ScoredEpisode

HEADWAY = "headway"
"""Fixed: Ray's group of the calls that are answered while another one runs."""
SENDING = "sending"
"""Fixed: the same of sending weights, which takes longer."""
_LOCK_WAIT_S = 60.0
"""Fixed: Ray ends the learner of a lost driver within seconds; one that lives on, on this machine, is somebody's."""


class LearnerActor:
    """Trains on the episodes of the run ``out`` (a folder or an address), one call at a time, one such process a rank.

    ``judges`` are those under whose labels rollouts are learned from, by subject. Ranks make the same calls; where
    there are several, they meet in the file ``meeting`` of the learner's folder and wait ``limit_s`` for each other.
    They write only where they see the ``mark`` of the run folder, and raise ``FolderNotShared`` elsewhere.
    """

    def __init__(
        self,
        settings: LearnerSettings,
        policy: str,
        out: str,
        judges: Mapping[LabelSubject, str],
        rank: int = 0,
        meeting: str = "",
        limit_s: float = 0.0,
        mark: str = "",
    ) -> None:
        # With torch, which the driver, who only names this class, goes without.
        from learner.ranks import join_group
        from learner.trainer import Learner
        from policy.broadcast_sender import BroadcastSender

        require_mark(mark)
        self._mark = mark
        if rank == 0:
            # A learner whose driver was killed lives some moments longer, and must not write beside this one.
            self._lock = RunLock(local_path(out), name="learner.lock", wait_s=_LOCK_WAIT_S)
            self._lock.__enter__()
        if settings.ranks > 1:
            join_group(Path(meeting), rank, settings.ranks, settings.device, limit_s)
        folders = RunFolders(local_path(out))
        self._out = out
        self._sender = BroadcastSender(settings.device, ray.util.get_node_ip_address())
        self._learner = Learner(settings, str(bring(policy)), folders.bookmarks)
        self._episodes = LabelledBuffer(ReplayBuffer(folders.episodes), LabelStore(folders.labels), judges)

    def record(self, files: Mapping[str, int]) -> None:
        """Let what lies in these shards and files of labels count before all else; see ``ReplayBuffer.record``."""
        self.bring(files)
        self._episodes.buffer.record(files)
        self._episodes.labels.record(files)

    def bring(self, names: Iterable[str]) -> None:
        """Have these shards and files of labels on this node."""
        if is_address(self._out):
            for name, digest in named_by_content(names).items():
                working_copy_of(self._out).bring(name, digest)

    def clone(self, episode_ids: Sequence[str]) -> CloneUpdate:
        """Clone the successful and faulty demonstrations alike; return metrics."""
        return self._learner.clone(self._read(episode_ids))

    def pretrain(self, critic: str, episode_ids: Sequence[str]) -> CriticMetrics:
        """Teach one critic on demonstrations before the first phase; return metrics."""
        return self._learner.pretrain(critic, self._read(episode_ids))

    def take_critics(self) -> tuple[str, ...]:
        """Take the critics of the policy folder that fit and return their names."""
        return self._learner.take_critics()

    def score(self, episode_ids: Sequence[str]) -> list[ScoredEpisode]:
        """Return every action's token log-probabilities under the current policy."""
        episodes = self._read(episode_ids)
        return [
            ScoredEpisode(episode.episode_id, steps)
            for episode, steps in zip(episodes, self._learner.score(episodes), strict=True)
        ]

    def update_critics(
        self, rollout_ids: Sequence[str], earlier_ids: Sequence[str], phase: int, seed: int
    ) -> CriticsUpdate:
        """Train the critics on a phase's episodes and on earlier ones, whole, and return metrics."""
        return self._learner.update_critics(
            self._read(rollout_ids), self._read(earlier_ids), phase_index=phase, seed=seed
        )

    def update_actor(self, rollout_ids: Sequence[str], replayed: Sequence[Kept], phase: int, seed: int) -> ActorUpdate:
        """Train the actor on the same data with the critics as they are (MiRA Alg. 1), and return metrics."""
        return self._learner.update_actor(
            self._read(rollout_ids),
            self._read([kept.episode_id for kept in replayed]),
            phase_index=phase,
            seed=seed,
            replayed_steps={kept.episode_id: kept.steps for kept in replayed},
        )

    def ask(self, critic: str, episode_ids: Sequence[str]) -> dict[str, list[float]]:
        """Return for each episode one critic's answers for its states."""
        answers = self._learner.ask(critic, self._read(episode_ids))
        return {episode_id: answer.tolist() for episode_id, answer in zip(episode_ids, answers, strict=True)}

    def ask_first(self, critic: str, episode_ids: Sequence[str], state_files: Sequence[str]) -> dict[str, float]:
        """Return one critic's answer for the first state of each task; an episode's counts before one in a file."""
        self._episodes.refresh()
        folder = self._episodes.buffer.directory
        prompts = {one.task_id: one.prompt_ids for name in state_files for one in read_first_states(folder / name)}
        prompts |= {played.task_id: played.steps[0].prompt_ids for played in self._episodes.stream(episode_ids)}
        tasks = sorted(prompts)
        answers: list[float] = self._learner.ask_states(critic, [prompts[task] for task in tasks], tasks).tolist()
        return dict(zip(tasks, answers, strict=True))

    def publish(self, folder: str, version: int) -> PublishedWeights:
        """Write the actor's weights as one version, durable for all nodes, and return what names them."""
        require_mark(self._mark)
        weights = self._learner.publish(local_path(folder), version)
        if not is_address(folder):
            return weights
        address = f"{folder}/{Path(weights.path).name}"
        keep(address)
        return replace(weights, path=address)

    def probe(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the learner's own token log-probabilities of one action, to compare with a server's."""
        prompt, action = np.asarray(prompt_ids, dtype=np.int32), np.asarray(action_ids, dtype=np.int32)
        logprobs: list[float] = self._learner.probe(prompt, action).tolist()
        return logprobs

    def export(self, folder: str, critics: str) -> dict[str, str]:
        """Write the actor as a policy folder that anything can load; return its files' SHA-256s if it is in a store."""
        require_mark(self._mark)
        self._learner.export(local_path(folder), critics=critics)
        return keep(folder)

    def save(self, folder: str) -> dict[str, str]:
        """Write a checkpoint (actor, critics, optimisers, generators); return as ``export`` does."""
        require_mark(self._mark)
        path = local_path(folder)
        self._learner.save(path)
        return keep(folder, digests_as_written(path)) if is_address(folder) else {}

    def load(self, folder: str) -> None:
        """Go back to a checkpoint."""
        self._learner.load(bring(folder))

    def start(self) -> None:
        """Answer once the models are built."""

    @ray.method(concurrency_group=HEADWAY)
    def headway(self) -> Headway:
        """Return how far the learner is, while another call runs."""
        return self._learner.compute.meter.now

    @ray.method(concurrency_group=SENDING)
    def invite(self, weights: str, devices: Sequence[str], limit_s: float) -> list[str]:
        """Open a meeting for servers that this file of weights is to be sent to; see ``BroadcastSender``."""
        return self._sender.invite(local_path(weights), devices, limit_s)

    @ray.method(concurrency_group=SENDING)
    def send(self, weights: str) -> None:
        """Send the file of weights to the servers that were invited."""
        self._sender.send(local_path(weights))

    def _read(self, episode_ids: Sequence[str]) -> list[Trajectory]:
        self._episodes.refresh()
        return self._episodes.trajectories(episode_ids, pages=False)
