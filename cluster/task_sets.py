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
from curriculum.training_tasks import HeldOut, TrainingTasks
from environments.kinds import KINDS
from environments.task_sources import ChangedTasks, TaskSource
from judges.answers import with_answer
from judges.of_milestones.encoder import Remembering, encoder_named
from records.episodes import Source, Task
from rollout_workers.spec import EpisodeSpec
from sites.quality import Quality


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

    @cached_property
    def training(self) -> TrainingTasks:
        """The training tasks that the curriculum chooses from."""
        evaluated = {split: self.split(split) for split in self._recipe.run.evaluation.splits}
        held_out = HeldOut.of(
            tasks=[t for name, tasks in evaluated.items() if not name.endswith("_templates") for t in tasks],
            with_templates=[t for name, tasks in evaluated.items() if name.endswith("_templates") for t in tasks],
        )
        seed, count = self._recipe.run.seed, self._recipe.run.training_tasks
        return TrainingTasks(self._source.task_set(seed, "train", count), held_out)

    def split(self, name: str) -> list[Task]:
        """Return the evaluation tasks of a split; they depend on ``run.evaluation`` and not on the run's seed."""
        return self._evaluated(name, self._recipe.run.evaluation.count(name))

    def look(self, most: int) -> dict[str, list[Task]]:
        """Return the first tasks of each set, ``most`` at most; raise what the source of tasks raises."""
        run = self._recipe.run
        evaluated = {split: self._evaluated(split, most) for split in run.evaluation.splits}
        return {**evaluated, "train": self._source.task_set(run.seed, "train", min(run.training_tasks, most))}

    def demonstrations(self, purpose: str, count: int, *, flawless: bool = False) -> list[EpisodeSpec]:
        """Return ``count`` demonstrations of training tasks: many of short ones, few of long ones.

        ``purpose`` opens their ids, so that sets for different purposes share no episode.
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
        long_count = 0 if flawless else round(count * settings.long_share)
        tasks = self._demonstrated.task_set(seed + 1, "train", 4 * count)
        long_tasks = [task for task in tasks if task.horizon >= settings.long_horizon]
        short_tasks = [task for task in tasks if task.horizon < settings.long_horizon]
        chosen = tasks[:count] if flawless else short_tasks[: count - long_count] + long_tasks[:long_count]
        self.training.held_out.check(chosen)
        return [
            EpisodeSpec(f"{purpose}-{i:05d}-{task.task_id}", task, Source.DEMONSTRATION, 0, seed * 100_003 + i,
                        temperature=0.0, quality=quality)
            for i, task in enumerate(chosen)
        ]  # fmt: skip

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


def _asking(recipe: Recipe, source: TaskSource) -> TaskSource:
    return ChangedTasks(source, with_answer) if recipe.milestones.answer else source


def _source(recipe: Recipe, environment: str) -> TaskSource:
    return KINDS.find(environment).tasks(recipe.environment_settings(environment))
