"""The phase loop: MiRA's outer algorithm (MiRA Alg. 2) from top to bottom.

Owns the order of stages. Holds ids and numbers; trajectories stay in their shards. Invariants: whatever happened in
between, the same recipe and folder give the same sequence (``cluster.stage_runner``); no phase is complete before its
ledger balances.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cluster.accounting import Accounting
from cluster.demonstrated import DEMONSTRATED
from cluster.display.run_display import RunDisplay
from cluster.errors import RunStopped
from cluster.labelling import Labeller, count_failures
from cluster.milestones.distilling import distilled_before, distilled_line, examples_of, owner
from cluster.milestones.writing import absent_line, evaluates_with_milestones, tasks_without
from cluster.monitors.monitor import Monitors
from cluster.recipe.recipe import Recipe
from cluster.run_folder.layout import CLONED, checkpoint_name, critics_name
from cluster.run_folder.ledger import LedgerFile
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.played_results import (
    NO_EPISODES,
    episode_counts,
    labelled_stage,
    split_results,
    steps_by_staleness,
    success_of,
    with_planning,
)
from cluster.run_folder.rollback import keep_episodes_of
from cluster.run_folder.stage_results import (
    ActorTrained,
    Cloned,
    CriticsPretrained,
    CriticsTrained,
    Evaluated,
    FirstStatesOpened,
    Labelled,
    MilestonesDistilled,
    MilestonesWritten,
    Published,
    ReplayFiltered,
    RolloutsPlayed,
    TasksChosen,
)
from cluster.run_tasks import RunTasks
from cluster.stage_runner import StageRunner
from cluster.system import System
from cluster.task_sets import TaskSets
from curriculum.resample import EmptyBandError
from records.episodes import Source, newest_version
from replay.buffer import ReplayBuffer
from replay.labelled import LabelledBuffer
from replay.labels import LabelStore
from replay.perplexity import Kept, fill_cap
from rollout_workers.results import NOTHING_PLAYED, RolloutResult
from rollout_workers.spec import EpisodeSpec


class Controller:
    """Runs what is left of a run: ``system`` has the processes, ``tasks`` knows what is played."""

    def __init__(
        self,
        recipe: Recipe,
        manifest: RunManifest,
        system: System,
        tasks: TaskSets,
        display: RunDisplay,
        monitors: Monitors,
        ledger: LedgerFile,
    ) -> None:
        self.recipe = recipe
        self.manifest = manifest
        self.system = system
        self.tasks = tasks
        self.run_tasks = RunTasks(tasks, manifest)
        self.display = display
        self.buffer = ReplayBuffer(system.folders.episodes)
        self.accounting = Accounting(manifest, ledger, self.buffer, display)
        self.labelled = LabelledBuffer(self.buffer, LabelStore(system.folders.labels), recipe.replay.judges)
        self._ahead: dict[int, RolloutResult] = {}
        self.stages = StageRunner(manifest, system, self.labelled, display, monitors, recipe.replay.pack_above)

    def run(self) -> None:
        """Warm-start, then play, filter, learn, publish, evaluate and choose tasks, phase after phase."""
        stage = self.stages.run
        self.stages.take_up()
        self.accounting.take_up()
        self.display.phase(0)
        stage(0, Cloned, self._clone)
        stage(0, CriticsPretrained, self._pretrain_critics)
        self.system.rollouts.retire(DEMONSTRATED if self.recipe.run.environment != DEMONSTRATED else "")
        self.stages.go_on_from_last_checkpoint()
        stage(0, Published, self._publish)
        if tasks_without(self._shown_milestones(0)):
            stage(0, MilestonesWritten, self._milestones)
        stage(0, Evaluated, self._evaluate)
        if self.recipe.warm_start.rollout_tasks:
            self._collect(0)
            self._choose(0)
        self.accounting.require_balance(0)
        for phase in range(1, self.recipe.run.phases + 1):
            self.display.phase(phase)
            if tasks_without(self._shown_milestones(phase)):
                stage(phase, MilestonesWritten, self._milestones)
            self._collect(phase)
            with self._playing_ahead(phase):
                stage(phase, ReplayFiltered, self._replay)
                stage(phase, CriticsTrained, self._critics)
                stage(phase, ActorTrained, self._actor)
            stage(phase, Published, self._publish)
            stage(phase, Evaluated, self._evaluate)
            self._choose(phase)
            self.accounting.require_balance(phase)
            self.system.folders.forget_checkpoints(phase, self.recipe.run.keep_checkpoints)
        self.system.learner.export(critics=self.recipe.run.kept_critics)
        self.display.finish()

    def _collect(self, phase: int) -> None:
        """Have the phase's rollouts played and labelled."""
        self.stages.run(phase, RolloutsPlayed, self._rollouts)
        if self._distils:
            self.stages.run(phase, MilestonesDistilled, self._distil)
        if self.recipe.replay.judges:
            self.stages.run(phase, Labelled, self._label)

    def _choose(self, phase: int) -> None:
        """Have the next phase's tasks chosen; before the first choice, what the critic is to be asked about."""
        if self.recipe.curriculum.value_band and phase == self.tasks.first_phase:
            self.stages.run(phase, FirstStatesOpened, self._first_states)
        self.stages.run(phase, TasksChosen, self._curriculum)

    def _clone(self, phase: int) -> Cloned:
        """Clone demonstrations, unless the recipe starts from a policy that has been through this."""
        played, metrics, imported = NO_EPISODES, None, self.system.take_data()
        self.buffer.refresh()
        taught = tuple(i for i in imported if self.buffer.entry(i).outcome == 1.0)
        if self.system.clones and not imported:
            specs = self.tasks.demonstrations("clone", self.recipe.warm_start.demonstrations)
            result = self._play(phase, Cloned.stage, specs, DEMONSTRATED)
            played = episode_counts(specs, result, self.buffer)
            taught = played.episodes
        if self.system.clones:
            metrics = self.system.learner.clone(taught)
        self.system.learner.save(CLONED)
        return Cloned(**vars(played), checkpoint=CLONED, metrics=metrics, imported=imported)

    def _pretrain_critics(self, phase: int) -> CriticsPretrained:
        """Teach the critics before the first phase: progress on flawless, the value on imperfect demonstrations.

        Both learn from imported data instead where there is some. A policy that is taken as it is brings its own.
        """
        self.system.learner.load(CLONED)
        imported = list(self.manifest.result(phase, Cloned).imported)
        brought = self.recipe.warm_start.take_critics and not self.system.clones
        taken = self.system.learner.take_critics() if brought else ()
        taught_here = [critic for critic in self.system.algorithm.critics if critic not in taken]
        specs = {critic: self.tasks.critic_demonstrations(critic) for critic in taught_here}
        asked = [spec for critic in sorted(specs) for spec in specs[critic]]
        played = episode_counts(asked, self._play(phase, CriticsPretrained.stage, asked, DEMONSTRATED), self.buffer)
        judged = set(played.episodes)
        taught = {
            critic: imported or sorted(spec.episode_id for spec in specs[critic] if spec.episode_id in judged)
            for critic in sorted(specs)
            if imported or specs[critic]
        }
        metrics = {critic: self.system.learner.pretrain(critic, ids) for critic, ids in taught.items()}
        self.system.learner.save(checkpoint_name(0))
        return CriticsPretrained(**vars(played), checkpoint=checkpoint_name(0), metrics=metrics, taken=taken)

    @property
    def _looks_for_milestones(self) -> bool:
        wanted = bool(self.recipe.milestones.model) or self.system.algorithm.needs_milestones
        return wanted and not self._distils

    @property
    def _distils(self) -> bool:
        return self.recipe.milestones.source == "successes"

    def _shown_milestones(self, phase: int) -> list[EpisodeSpec]:
        """Return what is to have milestones from a phase on: its rollouts, and in phase 0 also the evaluations."""
        evaluated = self.tasks.evaluation(0) if phase == 0 and evaluates_with_milestones(self.recipe) else []
        return [*evaluated, *(self.run_tasks.chosen(phase) if self._looks_for_milestones else ())]

    def _milestones(self, phase: int) -> MilestonesWritten:
        """Let milestones be written for tasks that have none."""
        tasks = tasks_without(self.run_tasks.with_written(self._shown_milestones(phase), phase - 1))
        written = self.system.write_milestones(tasks)
        if said := absent_line(written, len(tasks), self.recipe.milestones, f"phase {phase}"):
            self.display.note(said)
        return written

    def _rollouts(self, phase: int) -> RolloutsPlayed:
        """Play the phase's tasks with the current policy; episodes that were finished before are kept."""
        specs, ahead = self.run_tasks.rollouts(phase), self._ahead.pop(phase, NOTHING_PLAYED)
        left = [spec for spec in specs if spec.episode_id not in ahead.failures]
        result = ahead.then(self._play(phase, RolloutsPlayed.stage, left, self.recipe.run.environment))
        if not self._may_play_ahead(phase):
            self.system.rollouts.rest()
        counts = episode_counts(specs, result, self.buffer)
        older = counts.episodes if self.recipe.rollout.max_staleness else ()
        staleness, success = steps_by_staleness(self.buffer.stream(older)), success_of(specs, self.buffer)
        played = RolloutsPlayed(**vars(counts), staleness=staleness, success=success)
        if not played.episodes:
            raise RunStopped(
                f"phase {phase}: none of {len(specs)} episodes has a verdict, so there is nothing to learn from; they "
                f"failed by {played.failures}: mend what that names and start the same command again"
            )
        return played

    def _may_play_ahead(self, phase: int) -> bool:
        """Whether the next phase's rollouts may begin, by weights that are one version old when they are learned from.

        A start that goes on where these weights are served no more leaves that to the phases after.
        """
        served = self.system.rollouts.version == newest_version(Source.ROLLOUT, phase)
        return bool(self.recipe.rollout.max_staleness) and served and 0 < phase < self.recipe.run.phases

    @contextmanager
    def _playing_ahead(self, phase: int) -> Iterator[None]:
        """Let free workers begin the next phase's rollouts while the learner works on this one's, where they may."""
        if not self._may_play_ahead(phase) or self.manifest.stage_done(phase, ActorTrained.stage):
            yield
            return
        specs = self.run_tasks.with_written(self.tasks.rollouts(phase + 1, self._curriculum(phase).tasks), phase)
        if self._looks_for_milestones:
            without = {task.task_id for task in tasks_without(specs)}  # they are written before their phase
            specs = [spec for spec in specs if spec.task.task_id not in without]
        journal = self.accounting.journal(phase + 1, RolloutsPlayed.stage, specs)
        play, environment = self.system.rollouts.ahead, self.recipe.run.environment
        with play(specs, self.buffer, self.display, environment=environment, journal=journal) as begun:
            yield
        self._ahead[phase + 1] = begun.result
        done = len(begun.result.located)
        self.display.note(
            f"{done} of {len(specs)} rollouts of phase {phase + 1} were played ahead, by version "
            f"{newest_version(Source.ROLLOUT, phase)}"
        )

    def _distil(self, phase: int) -> MilestonesDistilled:
        """Let milestones be distilled from the phase's successes, where they are first ones or shorter than before."""
        settings, counted = self.recipe.milestones, self._counted(phase)
        known = distilled_before(self.manifest, phase - 1)
        tasks = self.run_tasks.tasks(phase)
        found, absent = self.system.distil_milestones(examples_of(self.buffer.stream(counted), tasks, known, settings))
        met = {owner(tasks[episode_id], settings) for episode_id in counted}
        cost = sum(one.cost_usd - (known[of].cost_usd if of in known else 0.0) for of, one in found.items())
        result = MilestonesDistilled(found, absent, len(met), len(met & {*known, *found}), cost)
        self.display.note(distilled_line(result, settings, phase))
        return result

    def _label(self, phase: int) -> Labelled:
        """Ask the judges that the recipe names about the phase's episodes."""
        counted, judges = self._counted(phase), self.system.players.judges
        labeller = Labeller(self.recipe, judges, self.buffer, self.labelled.labels)
        played = self.run_tasks.tasks(phase)
        milestone_tasks = self.run_tasks.milestone_tasks(phase) if self._distils else None
        tasks = {episode_id: played[episode_id] for episode_id in counted}
        questions = labeller.missing(tasks, self.recipe.replay.judges, milestone_tasks)
        failures = labeller.label(questions, f"p{phase:03d}", self.display.asked)
        by_subject = {subject: count_failures(failures, subject) for subject in self.recipe.replay.judges}
        labelled = labelled_stage(counted, self.labelled, by_subject)
        if not all(said.labelled for said in labelled.subjects.values()):
            raise RunStopped(
                f"phase {phase}: none of {len(counted)} episodes has its labels, so there is nothing to learn from; "
                f"they failed by {by_subject}: mend what that names and start the same command again"
            )
        return labelled

    def _replay(self, phase: int) -> ReplayFiltered:
        """Filter the successes of earlier phases by their perplexity under the current policy."""
        fresh = self._counted(phase)
        wanted = self.system.algorithm.data_choice.replay
        earlier = range(self.tasks.first_phase, phase)
        counted = {episode_id for one in earlier for episode_id in self._counted(one)}
        stored = [i for i in self.labelled.successes(phases=earlier) if i in counted] if wanted != "none" else []
        settings = self.recipe.replay
        kept, audit = fill_cap(
            stored,
            self.system.learner.score,
            low=settings.perplexity_low if wanted == "perplexity" else 1.0,
            high=settings.perplexity_high if wanted == "perplexity" else sys.float_info.max,  # the audit is JSON
            per=settings.per,
            of=settings.perplexity_of,
            cap=settings.cap(self._units(fresh)),
            seed=self.recipe.run.seed * 1000 + phase,
        )
        return ReplayFiltered(kept={unit.episode_id: unit.steps for unit in kept}, audit=audit.summary())

    def _critics(self, phase: int) -> CriticsTrained:
        """Train the critics on this phase's and the replayed episodes (MiRA Alg. 1, first half).

        Those of the past phases that the recipe names come along, whole, as all do that a critic learns from.
        """
        rollouts, kept = self._learned_from(phase)
        past = range(max(self.tasks.first_phase, phase - self.recipe.replay.critic_phases), phase)
        earlier = dict.fromkeys([*(one.episode_id for one in kept), *(i for one in past for i in self._counted(one))])
        metrics = self.system.learner.update_critics(rollouts, list(earlier), phase, self.recipe.run.seed)
        self._show_losses({critic: update.loss for critic, update in metrics.critics.items()})
        self.system.learner.save(critics_name(phase))
        return CriticsTrained(checkpoint=critics_name(phase), metrics=metrics)

    def _actor(self, phase: int) -> ActorTrained:
        """Shape the advantages with the new critics and train the actor (MiRA Alg. 1, second half)."""
        metrics = self.system.learner.update_actor(*self._learned_from(phase), phase, self.recipe.run.seed)
        self._show_losses({"actor": metrics.actor.loss})
        self.system.learner.save(checkpoint_name(phase))
        return ActorTrained(checkpoint=checkpoint_name(phase), metrics=metrics)

    def _publish(self, phase: int) -> Published:
        """Publish the weights as version ``phase`` to every server, as a transaction."""
        published = self.system.publish(phase)
        others = keep_episodes_of(phase, published.weights.checksum, self.manifest, self.buffer)
        if others:
            self.display.note(others)
        return published

    def _evaluate(self, phase: int) -> Evaluated:
        """Play the held-out tasks, where the recipe asks for it after this phase."""
        settings, last = self.recipe.run.evaluation, phase == self.recipe.run.phases
        if not last and (phase % settings.every if phase else not settings.before_rl):
            return Evaluated(**vars(NO_EPISODES), splits={})
        specs = self.run_tasks.evaluation(phase, screenshots=settings.screenshots if last else 0)
        result = self._play(phase, Evaluated.stage, specs, self.recipe.run.environment)
        splits = split_results(specs, settings.splits, result, self.buffer, settings.passes)
        planning = self.recipe.rollout.planning
        if planning.mode != "none":
            splits = with_planning(splits, specs, self.buffer, self.system.folders.plans, planning)
        return Evaluated(**vars(episode_counts(specs, result, self.buffer)), splits=splits)

    def _curriculum(self, phase: int) -> TasksChosen:
        """Choose the next phase's tasks by what failed in this one, or in all so far.

        Without the critic's band they are known once this phase is played.
        """
        phases = range(self.tasks.first_phase, phase + 1) if self.recipe.curriculum.failures == "all" else (phase,)
        counted = {episode_id for one in phases for episode_id in self._counted(one)}
        failed = [lost.task_id for lost in self.labelled.failures(phases=phases) if lost.episode_id in counted]
        values: dict[str, float] = {}
        if self.recipe.curriculum.value_band:
            opened = self.manifest.result(self.tasks.first_phase, FirstStatesOpened).state_files
            values = self.system.learner.ask_first("value", sorted(self._newest(phase).values()), opened)
        played = [spec for one in phases for spec in self.run_tasks.rollouts(one)]
        try:
            chosen = self.tasks.choose(phase + 1, failed, played, values)
        except EmptyBandError as error:
            raise RunStopped(
                f"phase {phase}: {error} (curriculum.value_low, curriculum.value_high) in a new run"
            ) from error
        if chosen.outside_band is not None:
            total = len(self.tasks.training)
            self.display.note(f"{total - chosen.outside_band} of {total} training tasks lie within the critic's band")
        return chosen

    def _first_states(self, phase: int) -> FirstStatesOpened:
        """Open the first pages of the training tasks that have no episode yet."""
        played = self._newest(phase)
        tasks = [task for task in self.tasks.training if task.task_id not in played]
        opened = self.system.rollouts.open_first_states(tasks, self.display)
        if opened.absent:
            first = next(iter(opened.absent.values()))
            self.display.note(
                f"{len(opened.absent)} of {len(tasks)} first pages did not open; these tasks stay outside the critic's "
                f"band ({first})"
            )
        return opened

    def _newest(self, phase: int) -> dict[str, str]:
        """Return the newest counted episode of each training task up to a phase, by the task's id."""
        training = {task.task_id for task in self.tasks.training}
        counted = [episode_id for one in range(self.tasks.first_phase, phase + 1) for episode_id in self._counted(one)]
        newest = {self.buffer.entry(episode_id).task_id: episode_id for episode_id in counted}
        return {task_id: episode_id for task_id, episode_id in newest.items() if task_id in training}

    def _counted(self, phase: int) -> list[str]:
        """Return the rollouts that a phase counts; those of a late shard, or of before a rollback, are none of them."""
        return list(self.manifest.result(phase, RolloutsPlayed).episodes)

    def _units(self, episode_ids: list[str]) -> int:
        """Return how many units of the replay filter these episodes hold."""
        if self.recipe.replay.per == "trajectory":
            return len(episode_ids)
        return sum(len(episode.steps) for episode in self.buffer.stream(episode_ids))

    def _learned_from(self, phase: int) -> tuple[list[str], list[Kept]]:
        """Return the ids of the phase's episodes, and what the replay filter kept of earlier ones."""
        kept = self.manifest.result(phase, ReplayFiltered).kept
        return self._counted(phase), [Kept(episode_id, steps) for episode_id, steps in kept.items()]

    def _show_losses(self, losses: Mapping[str, float | None]) -> None:
        self.display.losses({part: loss for part, loss in losses.items() if loss is not None})

    def _play(self, phase: int, stage: str, specs: list[EpisodeSpec], environment: str) -> RolloutResult:
        journal = self.accounting.journal(phase, stage, specs)
        result = self.system.rollouts.play(specs, self.buffer, self.display, environment=environment, journal=journal)
        journal.force()
        self.buffer.refresh()
        self.system.learner.bring(self.buffer.shards)
        return result
