"""Which tasks a run plays: the training tasks, the evaluation sets, demonstrations, and the specs of each.

Owns episode ids and seeds. Invariants: every set depends on the recipe alone; the training tasks never hold a
task or a template of an evaluation set; an episode id names run-independent facts (what for, which
phase, which task, which attempt), so a repeated stage asks for the very same episodes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from cluster.demonstrated import DEMONSTRATED, demonstrated_sites
from cluster.errors import RecipeError
from cluster.recipe.recipe import Recipe
from cluster.run_folder.stage_results import ChosenTask, TasksChosen
from curriculum.resample import next_tasks
from curriculum.settings import TFIDF
from curriculum.similarity import EmbeddingSimilarity, Similarity
from curriculum.training_tasks import EvaluationLeakError, HeldOut, TrainingTasks
from environments.kinds import KINDS
from environments.task_sources import ChangedTasks, TaskSource
from judges.answers import with_answer
from judges.of_milestones.encoder import Remembering, encoder_named
from records.episodes import Source, Task
from rollout_workers.spec import EpisodeSpec
from sites.quality import Quality

_DRAWN_FOR_EACH = 4
"""Fixed: tasks drawn for each demonstration, out of which short and long ones are taken."""


class TaskSets:
    """The tasks of one recipe, of the environment that it names.

    Demonstrations are always of the embedded sites, whose experts play them without a browser.
    """

    def __init__(self, recipe: Recipe) -> None:
        """Choose where tasks come from; raise ``RecipeError`` where the recipe's environment does not exist."""
        self._recipe = recipe
        self._demonstrated = _asking(recipe, KINDS.find(DEMONSTRATED).tasks(demonstrated_sites(recipe)))
        try:
            self._source = _asking(recipe, _source(recipe, recipe.run.environment))
        except ValueError as error:
            raise RecipeError(f"run.environment: {error}") from error

    def prepare(self) -> None:
        """Draw the training tasks and load what compares them; raise ``RecipeError`` where that cannot be done."""
        _ = self.training, self._recipe.run.phases and self._similarity

    @cached_property
    def training(self) -> TrainingTasks:
        """The training tasks that the curriculum chooses from.

        Raises ``RecipeError`` where there are too few of them, or one belongs to an evaluation.
        """
        seed, count = self._recipe.run.seed, self._recipe.run.training_tasks
        try:
            evaluated = {split: self.split(split) for split in self._recipe.run.evaluation.splits}
            return TrainingTasks(self._source.task_set(seed, "train", count), _held_out(evaluated))
        except (EvaluationLeakError, LookupError, ValueError) as error:
            raise RecipeError(f"run.training_tasks and run.evaluation: {error.args[0]}") from error

    def split(self, name: str) -> list[Task]:
        """Return the evaluation tasks of a split; they depend on ``run.evaluation`` and not on the run's seed."""
        return self._evaluated(name, self._recipe.run.evaluation.count(name))

    def first(self, split: str) -> Task:
        """Return the first task of an evaluation split; raise what the source of tasks raises where it has none."""
        return self._source.task_set(self._recipe.run.evaluation.seed, split, 1)[0]

    def look(self, most: int) -> dict[str, list[Task]]:
        """Return the first tasks of each set, ``most`` at most.

        Raises what the source of tasks raises, and ``RecipeError`` where one of the training tasks belongs to an
        evaluation, or there are too few to demonstrate.
        """
        run = self._recipe.run
        evaluated = {split: self._evaluated(split, most) for split in run.evaluation.splits}
        training = self._source.task_set(run.seed, "train", min(run.training_tasks, most))
        try:
            _held_out(evaluated).check(training)
        except EvaluationLeakError as error:
            raise RecipeError(str(error)) from error
        if self._recipe.demonstrates and self._recipe.clones:
            self._demonstrated_tasks(
                min(self._recipe.warm_start.demonstrations, most // _DRAWN_FOR_EACH), flawless=False
            )
        return {**evaluated, "train": training}

    def demonstrations(self, purpose: str, count: int, *, flawless: bool = False) -> list[EpisodeSpec]:
        """Return ``count`` demonstrations of training tasks: many of short ones, few of long ones.

        ``purpose`` opens their ids, so that sets for different purposes share no episode. Raises ``RecipeError`` where
        there are not so many.
        """
        settings, seed = self._recipe.warm_start, self._recipe.run.seed
        quality = (
            None
            if flawless
            else Quality(
                low=settings.faulty_low,
                high=settings.faulty_high,
                seed=settings.habits_seed,
                detours=settings.detours,
                habitual=settings.habitual,
            )
        )
        chosen = self._demonstrated_tasks(count, flawless=flawless)
        self.training.held_out.check(chosen)
        return [
            EpisodeSpec(f"{purpose}-{i:05d}-{task.task_id}", task, Source.DEMONSTRATION, 0, seed * 100_003 + i,
                        temperature=0.0, quality=quality)
            for i, task in enumerate(chosen)
        ]  # fmt: skip

    def _demonstrated_tasks(self, count: int, *, flawless: bool) -> list[Task]:
        """Return the tasks of ``count`` demonstrations; of long ones there may be fewer than their share."""
        settings = self._recipe.warm_start
        try:
            tasks = self._demonstrated.task_set(
                self._recipe.run.seed + 1, "train", _DRAWN_FOR_EACH * count, at_least=count
            )
        except ValueError as error:
            raise RecipeError(f"warm_start: {count} demonstrations are asked for: {error}") from error
        if flawless:
            return tasks[:count]
        long_count = round(count * settings.long_share)
        long_tasks = [task for task in tasks if task.horizon >= settings.long_horizon][:long_count]
        short_tasks = [task for task in tasks if task.horizon < settings.long_horizon]
        if len(short_tasks) < count - len(long_tasks):
            raise RecipeError(
                f"warm_start: {count - long_count} of {count} demonstrations are to be of tasks of fewer steps than "
                f"warm_start.long_horizon ({settings.long_horizon}), and of {len(tasks)} tasks that were drawn only "
                f"{len(short_tasks)} are; raise warm_start.long_share or warm_start.long_horizon, or ask for fewer"
            )
        return short_tasks[: count - len(long_tasks)] + long_tasks

    def critic_demonstrations(self, critic: str) -> list[EpisodeSpec]:
        """Return the demonstrations that teach a critic before the first phase; none where the recipe has none."""
        if not self._recipe.demonstrates:
            return []
        settings = self._recipe.warm_start
        count, flawless = {
            "potential": (settings.potential_demonstrations, self._recipe.learner.potential_data.labels == "successes"),
            "value": (settings.value_demonstrations, False),
        }[critic]
        return self.demonstrations(critic, count, flawless=flawless) if count else []

    @property
    def first_phase(self) -> int:
        """The first phase that has rollouts: 0 where the start policy's own fill the replay buffer, else 1."""
        return 0 if self._recipe.warm_start.rollout_tasks else 1

    def rollouts(self, phase: int, chosen: Sequence[ChosenTask] | None) -> list[EpisodeSpec]:
        """Return the episodes of a phase: each chosen task (None: the first phase's) ``attempts_per_task`` times."""
        tasks = (
            self._first_tasks()
            if chosen is None
            else [self._source.task(item.template, item.parameters) for item in chosen]
        )
        run = self._recipe.run
        return [
            EpisodeSpec(f"p{phase:03d}-{i:04d}-{attempt}-{task.task_id}", task, Source.ROLLOUT, phase, run.seed,
                        temperature=self._recipe.rollout.temperature, group=f"p{phase:03d}-{i:04d}-{task.task_id}")
            for i, task in enumerate(tasks)
            for attempt in range(run.attempts_per_task)
        ]  # fmt: skip

    def evaluation(self, phase: int, *, screenshots: int = 0) -> list[EpisodeSpec]:
        """Return the episodes of one evaluation; the first ``screenshots`` are recorded with pictures."""
        settings = self._recipe.run.evaluation
        temperature = 0.0 if settings.passes == 1 else settings.temperature
        specs: list[EpisodeSpec] = []
        for split in settings.splits:
            for i, task in enumerate(self.split(split)):
                for attempt in range(settings.passes):
                    specs.append(
                        EpisodeSpec(f"e{phase:03d}-{split}-{i:04d}-{attempt}-{task.task_id}", task, Source.EVALUATION,
                                    phase, settings.seed, temperature, screenshots=len(specs) < screenshots)
                    )  # fmt: skip
        return specs

    def choose(
        self, phase: int, failed: Iterable[str], played: Sequence[EpisodeSpec], values: Mapping[str, float]
    ) -> TasksChosen:
        """Return the tasks of ``phase`` given the ids of failed tasks among the episodes played before.

        ``values`` holds V(s_0) by task id, for the critic's band; raises ``EmptyBandError`` where it leaves no task.
        """
        known = {task.task_id: task for task in (*self.training, *(spec.task for spec in played))}
        chosen = next_tasks(
            self.training,
            [known[task_id] for task_id in dict.fromkeys(failed)],
            self._recipe.curriculum,
            seed=self._recipe.run.seed,
            phase=phase,
            similarity=self._similarity,
            perturb=self._perturb,
            values=values,
        )
        tasks = tuple(ChosenTask(task.template, task.parameters) for task in chosen.tasks)
        outside = chosen.outside_band if self._recipe.curriculum.value_band else None
        return TasksChosen(tasks=tasks, origins=chosen.counts(), outside_band=outside)

    @cached_property
    def _similarity(self) -> Similarity | None:
        """What ``curriculum.encoder`` names; None for the curriculum's own."""
        name = self._recipe.curriculum.encoder
        if name == TFIDF:
            return None
        try:
            return EmbeddingSimilarity(Remembering(encoder_named(name)))
        except ValueError as error:
            raise RecipeError(f"curriculum.encoder: {error}") from error

    def _evaluated(self, split: str, most: int) -> list[Task]:
        settings = self._recipe.run.evaluation
        return self._source.task_set(settings.seed, split, min(settings.count(split), most))

    def _first_tasks(self) -> Sequence[Task]:
        # No page was seen yet that a critic could be asked about.
        settings, phase = replace(self._recipe.curriculum, value_band=False), self.first_phase
        if phase == 0:
            settings = replace(settings, tasks_per_phase=self._recipe.warm_start.rollout_tasks)
        return next_tasks(self.training, [], settings, seed=self._recipe.run.seed, phase=phase).tasks

    def _perturb(self, task: Task, rng: np.random.Generator) -> Task | None:
        """Return a task of the same template with other training parameters, or None where none is found."""
        return self._source.similar(task, random.Random(int(rng.integers(2**62))))


def _held_out(evaluated: Mapping[str, Sequence[Task]]) -> HeldOut:
    """Return what the evaluation's splits keep for themselves, those by template with their templates."""
    return HeldOut.of(
        tasks=[task for name, tasks in evaluated.items() if not name.endswith("_templates") for task in tasks],
        with_templates=[task for name, tasks in evaluated.items() if name.endswith("_templates") for task in tasks],
    )


def _asking(recipe: Recipe, source: TaskSource) -> TaskSource:
    return ChangedTasks(source, with_answer) if recipe.milestones.answer else source


def _source(recipe: Recipe, environment: str) -> TaskSource:
    return KINDS.find(environment).tasks(recipe.environment_settings(environment))
