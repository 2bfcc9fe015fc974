"""The learner: actor, critics and their optimisers, and one phase of training from trajectories to weights.

Owns the order of a phase (MiRA alg. 1): critics first, then shaped rewards and advantages with
the new critics, then the actor against the policy at the phase's start. Invariants: every shuffle comes from a
seed and the phase's number, so a phase depends on weights, optimiser states, data and seed alone; models
stay in evaluation mode, so that log-ratios carry no dropout noise. Knows no Ray, no browser and no task.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import nn

from learner.actor import update_actor
from learner.algorithms import resolve
from learner.batching import Sample, drawn_episodes
from learner.bookmarks import Bookmarks
from learner.checkpoints import checkpoint_id, read_checkpoint, read_state, write_checkpoint
from learner.clone import clone_actions
from learner.credit import assign_credit, signals
from learner.critics import predict
from learner.cross_fitting import CriticPair
from learner.data_choices import MASKS
from learner.dataset import (
    decisions,
    episode_numbers,
    outcome_targets,
    per_trajectory,
    state,
    state_count,
    states,
    with_verdict,
)
from learner.group_relative import silent_steps
from learner.logprobs import score_samples
from learner.losses import POLICY_LOSSES
from learner.mechanism import mechanism_of
from learner.metrics import ActorUpdate, CloneUpdate, CriticMetrics, CriticsUpdate, GroupCounts, Mechanism
from learner.models import models_of
from learner.objective import ActorData
from learner.optimiser import Compute, adamw
from learner.phase_batch import PhaseBatch
from learner.ranks import Ranks
from learner.settings import LearnerSettings
from learner.trained_critics import TrainedCritic
from policy.published_weights import PublishedWeights
from records.episodes import FloatArray, IntArray, Trajectory

CRITICS = "critics"
"""Where a policy folder holds critics: a checkpoint of them, without optimisers."""
_CLONE, _ACTOR = 0, 3
"""What is shuffled, in the seed of a shuffle; the critics have numbers of their own (``critic_kinds``)."""


class Learner:
    """Trains one policy. Holds the actor and, as far as the algorithm needs them, the two critics.

    Args:
        settings: algorithm and constants.
        model_dir: a policy directory (``config.json``, ``model.safetensors``, tokenizer).
        bookmarks: where trainings that last leave what a learner that died goes on from (``learner.bookmarks``).

    Raises:
        ValueError: unknown names in the settings, or an architecture whose output layer is not known.
    """

    def __init__(self, settings: LearnerSettings, model_dir: str | Path, bookmarks: Path | None = None) -> None:
        torch.set_num_threads(settings.threads)
        self.settings = settings
        self.algorithm = resolve(settings)
        ranks = Ranks.of_group(settings.device)
        self._model_dir = Path(model_dir)
        self.models = models_of(settings, model_dir, ranks)
        self.actor = self.models.actor
        self.compute = Compute(
            device=self.actor.device,
            max_tokens=settings.micro_batch_tokens,
            precision=settings.precision,
            ranks=ranks,
            bookmarks=Bookmarks(bookmarks, settings.bookmark_every_s, ranks, settings=repr(settings)),
        )
        self.phases = 0
        self._start_training_state()

    def _start_training_state(self) -> None:
        """Take the actor as it is for the warm start: give it a fresh optimiser, and the critics its backbone."""
        settings = self.settings
        self.actor_optimiser = adamw(self.actor, settings.actor.learning_rate, settings.actor.weight_decay)
        self.warm_start = self.models.reference() if self.algorithm.reference == "warm_start" else None
        make = CriticPair if settings.cross_fit else TrainedCritic
        self.critics = {name: make(name, self.models, settings, self.compute) for name in self.algorithm.critics}

    def _generator(self, seed: int | None, phase: int, part: int) -> np.random.Generator:
        return np.random.default_rng([self.settings.seed if seed is None else seed, phase, part])

    def clone(
        self,
        trajectories: Sequence[Trajectory],
        *,
        seed: int | None = None,
        on_update: Callable[[int, float], None] | None = None,
    ) -> CloneUpdate:
        """Clone the behaviour in ``trajectories`` (those with a verdict, failures too), then start the critics anew."""
        judged = with_verdict(trajectories)
        metrics = clone_actions(
            self.actor,
            decisions(judged),
            episode_numbers(judged),
            self.settings.clone,
            shuffle=self.settings.shuffle,
            generator=self._generator(seed, 0, _CLONE),
            compute=self.compute,
            on_update=on_update,
        )
        self._start_training_state()
        return metrics

    def pretrain(self, critic: str, trajectories: Sequence[Trajectory], *, seed: int | None = None) -> CriticMetrics:
        """Train one critic before the first phase.

        Raises:
            ValueError: the algorithm has no critic of this name.
        """
        chosen = self._critic(critic)
        return chosen.fit(trajectories, self._generator(seed, 0, chosen.kind.number), pretrain=True)

    def take_critics(self) -> tuple[str, ...]:
        """Take the critics of the policy folder that were taught what this algorithm's are, and return their names.

        Raises:
            CheckpointError: the folder's critics are damaged, or on another model.
        """
        source = self._model_dir / CRITICS
        if not source.is_dir():
            return ()
        held, own = read_state(source).get(CRITICS, {}), self._described_critics()
        taken = {name: critic for name, critic in self.critics.items() if held.get(name) == own[name]}
        read_checkpoint(source, _models_of(taken), {}, self.compute.ranks)
        return tuple(taken)

    def _described_critics(self) -> dict[str, dict[str, object]]:
        """Return of each critic its models' names and what its targets depend on."""
        return {
            name: {"models": list(critic.models), "taught": dict(critic.kind.taught(self.settings))}
            for name, critic in self.critics.items()
        }

    def score(self, trajectories: Sequence[Trajectory]) -> list[list[FloatArray]]:
        """Return the current policy's log-probabilities of every action token: per trajectory, per step, (A,)."""
        scores = self._score(decisions(trajectories))
        split: Iterator[FloatArray] = iter(scores)
        return [[next(split) for _ in trajectory.steps] for trajectory in trajectories]

    def probe(self, prompt_ids: IntArray, action_ids: IntArray) -> FloatArray:
        """Return the current policy's log-probabilities (A,) of one action, to compare with a server's."""
        sample = Sample(np.asarray(prompt_ids, dtype=np.int32), np.asarray(action_ids, dtype=np.int32))
        return self._score([sample])[0]

    def ask(self, critic: str, trajectories: Sequence[Trajectory]) -> list[FloatArray]:
        """Return one critic's answers for every state before an action: one array (T,) per trajectory.

        Raises:
            ValueError: the algorithm has no critic of this name.
        """
        asked = [(step.prompt_ids, trajectory.task_id) for trajectory in trajectories for step in trajectory.steps]
        answers = self.ask_states(critic, [prompt for prompt, _ in asked], [task_id for _, task_id in asked])
        return per_trajectory(answers, trajectories)

    def ask_states(self, critic: str, prompts: Sequence[IntArray], task_ids: Sequence[str]) -> FloatArray:
        """Return one critic's answers (N,) for the states that these prompts are, each of the task named beside it.

        Raises:
            ValueError: the algorithm has no critic of this name.
        """
        chosen = self._critic(critic)
        samples = [state(prompt) for prompt in prompts]
        return chosen.judge(predict(list(chosen.models.values()), samples, self.compute), task_ids)

    def update_critics(
        self,
        rollouts: Sequence[Trajectory],
        earlier: Sequence[Trajectory],
        phase_index: int,
        seed: int | None = None,
    ) -> CriticsUpdate:
        """Train the critics that the algorithm has: the first half of a phase.

        Args:
            rollouts: this phase's trajectories; those without a verdict are left out.
            earlier: trajectories from the buffer: the replayed successes, already chosen (perplexity band, cap), and
                the rollouts of past phases that critics learn from; those that are among the rollouts too are left
                out. Critics see them whole.
            phase_index: number of the phase; part of the seed of every shuffle.
            seed: the run's seed; None takes the settings'.

        Raises:
            ValueError: the algorithm has no phases (``sft``).
            FloatingPointError: a gradient was not finite.
        """
        batch = self._batch(rollouts, earlier, phase_index)
        seconds: dict[str, float] = {}
        metrics: dict[str, CriticMetrics] = {}
        for name, critic in self.critics.items():
            with _timed(seconds, name):
                data = batch.trajectories if critic.settings.use_replay else batch.rollouts
                metrics[name] = critic.fit(data, self._generator(seed, phase_index, critic.kind.number))
        return CriticsUpdate(metrics, seconds)

    def update_actor(
        self,
        rollouts: Sequence[Trajectory],
        replayed: Sequence[Trajectory],
        phase_index: int,
        seed: int | None = None,
        *,
        replayed_steps: Mapping[str, Sequence[int]] | None = None,
    ) -> ActorUpdate:
        """Shape rewards and advantages with the critics as they are, and train the actor: the second half of a phase.

        Data and errors are those of ``update_critics``, which comes first. ``replayed_steps`` says, for a filter per
        step, which step indices of a replayed episode the actor learns from; episodes not named are used whole.
        """
        batch = self._batch(rollouts, replayed, phase_index, replayed_steps)
        seconds: dict[str, float] = {}
        generator = self._generator(seed, phase_index, _ACTOR)
        with _timed(seconds, "credit"):
            data, groups, mechanism = self._actor_data(batch, generator)
        with _timed(seconds, "actor"):
            actor = update_actor(
                self.actor,
                self.actor_optimiser,
                data,
                POLICY_LOSSES[self.algorithm.policy_loss],
                self.settings,
                reference=self.actor if self.algorithm.reference == "phase_start" else self.warm_start,
                generator=generator,
                compute=self.compute,
            )
        self.phases += 1
        return ActorUpdate(
            phase=phase_index,
            algorithm=self.algorithm.name,
            rollouts=batch.fresh,
            replayed=len(batch.trajectories) - batch.fresh,
            left_out=len(rollouts) + len(replayed) - len(batch.trajectories),
            success_rate=float(np.mean([t.success for t in batch.rollouts])) if batch.rollouts else None,
            actor=actor,
            seconds=seconds,
            groups=groups,
            mechanism=mechanism,
        )

    def _batch(
        self,
        rollouts: Sequence[Trajectory],
        replayed: Sequence[Trajectory],
        phase: int,
        replayed_steps: Mapping[str, Sequence[int]] | None = None,
    ) -> PhaseBatch:
        if not self.algorithm.needs_phases:
            raise ValueError(f"algorithm {self.algorithm.name!r} has no phases: it ends with cloning")
        return PhaseBatch.of(rollouts, replayed, phase, replayed_steps)

    def _actor_data(
        self, batch: PhaseBatch, generator: np.random.Generator
    ) -> tuple[ActorData, GroupCounts | None, Mechanism | None]:
        """Return the decisions that the actor learns from, with their credit by the critics as they are.

        Groups that carry no signal are skipped and counted; what shapes rewards is held against a clock. Of more
        episodes than the actor may learn from, ``generator`` draws.
        """
        seen = batch.trajectories
        # One call for all of them: what they share of a batch is computed once.
        models = [model for critic in self.critics.values() for model in critic.models.values()]
        final = any(critic.kind.final for critic in self.critics.values())
        answers = iter(predict(models, states(seen, final=final), self.compute))
        tasks = [trajectory.task_id for trajectory in seen for _ in range(state_count(trajectory, final=final))]
        batch = batch.with_answers(
            {
                name: per_trajectory(critic.judge([next(answers) for _ in critic.models], tasks), seen, final=final)
                for name, critic in self.critics.items()
            }
        )
        wanted = MASKS[self.algorithm.data](batch, self.settings)
        credit = groups = mechanism = None
        if self.algorithm.advantage is not None:
            credit = assign_credit(batch, self.algorithm, self.settings)
        if credit is not None and self.algorithm.needs_groups:
            silent, groups = silent_steps(batch, credit.advantages)
            wanted &= ~silent
        if credit is not None and self.algorithm.shapes:
            mechanism = mechanism_of(batch, signals(batch, self.algorithm), credit.advantages)
            if self.settings.better_than_clock and self.algorithm.potential_source == "critic":
                mechanism.require_better_than_clock()
        episodes = episode_numbers(batch.trajectories)
        numbers, sizes = np.unique(episodes[wanted], return_counts=True)
        drawn = numbers[drawn_episodes(sizes, self.settings.actor.max_decisions, generator)]
        chosen = np.flatnonzero(wanted & np.isin(episodes, drawn))
        samples = decisions(batch.trajectories)
        behaviour = [step.logprobs for trajectory in batch.trajectories for step in trajectory.steps]
        data = ActorData(
            samples=[samples[i] for i in chosen],
            episodes=episodes[chosen],
            behaviour=[behaviour[i] for i in chosen],
            fresh=batch.steps(batch.is_fresh)[chosen],
            outcomes=outcome_targets(batch.trajectories)[chosen],
            credit=credit.at(chosen) if credit is not None else None,
        )
        return data, groups, mechanism

    def publish(self, directory: str | Path, version: int) -> PublishedWeights:
        """Write the actor's weights to a file in ``directory`` and return what names them, which servers verify."""
        path = Path(directory) / f"actor-{version:06d}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        return self.models.publish(path, version)

    def export(self, path: str | Path, *, critics: str = "") -> Path:
        """Write the actor as a policy directory of its own, with the tokenizer of ``model_dir``.

        With ``critics``, the name of a floating-point type, it holds them too in that type, where there are any, for
        ``take_critics``; they are whole models.
        """
        written = self.models.export(path)
        if critics and self.critics:
            state = {CRITICS: self._described_critics()}
            dtype = getattr(torch, critics)
            write_checkpoint(written / CRITICS, _models_of(self.critics), {}, state, self.compute.ranks, dtype=dtype)
        return written

    def save(self, path: str | Path) -> Path:
        """Write everything that the next phase depends on; see ``learner.checkpoints``."""
        named = {"backbone": self.models.backbone} if self.models.backbone else {}
        state = {"phases": self.phases, **named}
        written = write_checkpoint(path, self._modules(), self._optimisers(), state, self.compute.ranks)
        self.compute.bookmarks.saved(checkpoint_id(written))
        return written

    def load(self, path: str | Path) -> None:
        """Go on exactly where ``save`` was called.

        Raises:
            CheckpointError: the checkpoint is incomplete, damaged or of another model or algorithm.
        """
        modules, ranks = self._modules(), self.compute.ranks
        state = read_checkpoint(path, modules, self._optimisers(), ranks, backbone=self.models.backbone)
        self.phases = int(state["phases"])
        self.compute.bookmarks.loaded(checkpoint_id(path))

    def _modules(self) -> dict[str, nn.Module]:
        reference = {} if self.warm_start is None else {"warm_start": self.warm_start.kept}
        return {"actor": self.actor.kept, **reference, **_models_of(self.critics)}

    def _optimisers(self) -> dict[str, torch.optim.Optimizer]:
        critics = {name: own for critic in self.critics.values() for name, own in critic.optimisers.items()}
        return {"actor": self.actor_optimiser, **critics}

    def _score(self, samples: Sequence[Sample]) -> list[FloatArray]:
        return score_samples(self.actor, samples, self.compute)

    def _critic(self, name: str) -> TrainedCritic | CriticPair:
        if name not in self.critics:
            has = ", ".join(self.critics) or "none"
            raise ValueError(f"algorithm {self.algorithm.name!r} has no {name} critic; its critics are: {has}")
        return self.critics[name]


def _models_of(critics: Mapping[str, TrainedCritic | CriticPair]) -> dict[str, nn.Module]:
    """Return the models of all of these critics, by their names in checkpoints."""
    return {name: model for critic in critics.values() for name, model in critic.models.items()}


@contextmanager
def _timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Note how long the block takes as ``seconds[part]``."""
    started = time.perf_counter()
    try:
        yield
    finally:
        seconds[part] = time.perf_counter() - started
