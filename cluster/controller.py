"""The phase loop: MiRA's outer algorithm (seeds/000, Alg. 2) from top to bottom.

Owns the order of stages. Holds ids and numbers; trajectories stay in their shards. Invariants: a stage
is recorded in the manifest only after everything it names is durable; a recorded stage is never run
again; whatever happened in between, the same recipe and folder give the same sequence.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from cluster.config import Recipe
from cluster.errors import RunStopped
from cluster.manifest import RunManifest
from cluster.metrics_log import MetricsLog
from cluster.progress import Progress
from cluster.run_folders import CLONED, checkpoint_name
from cluster.stage_data import episode_data, flat_numbers, split_data
from cluster.system import System
from cluster.task_sets import TaskSets
from replay.buffer import ReplayBuffer
from replay.perplexity import Kept, band_filter
from replay.records import Source
from rollout_workers.report import RolloutReport
from rollout_workers.spec import EpisodeSpec


class Controller:
    """Runs what is left of a run: ``system`` has the processes, ``tasks`` knows what is played."""

    def __init__(
        self,
        recipe: Recipe,
        manifest: RunManifest,
        system: System,
        tasks: TaskSets,
        progress: Progress,
        log: MetricsLog,
    ) -> None:
        self.recipe = recipe
        self.manifest = manifest
        self.system = system
        self.tasks = tasks
        self.progress = progress
        self.log = log
        self.buffer = ReplayBuffer(system.folders.episodes)

    def run(self) -> None:
        """Warm-start, then play, filter, learn, publish, evaluate and choose tasks, phase after phase."""
        self.progress.phase(0)
        self._stage(0, "clone", self._clone)
        self._stage(0, "critics", self._pretrain_critics)
        self.system.retire("browserless" if self.recipe.run.environment != "browserless" else "")
        self._go_on_from_last_checkpoint()
        self._stage(0, "publish", self._publish)
        self._stage(0, "evaluate", self._evaluate)
        for phase in range(1, self.recipe.run.phases + 1):
            self.progress.phase(phase)
            self._stage(phase, "rollouts", self._rollouts)
            self._stage(phase, "replay", self._replay)
            self._stage(phase, "learn", self._learn)
            self._stage(phase, "publish", self._publish)
            self._stage(phase, "evaluate", self._evaluate)
            self._stage(phase, "curriculum", self._curriculum)
            self.system.folders.forget_checkpoints(phase, self.recipe.run.keep_checkpoints)
        self.system.export()
        self.progress.finish()

    def _stage(self, phase: int, name: str, work: Callable[[int], dict[str, Any]]) -> None:
        """Run a stage unless it is recorded, and record it."""
        if not self.manifest.stage_done(phase, name):
            self.progress.stage(name)
            started = time.perf_counter()
            data = work(phase)
            files = self.system.folders.checkpoint_files(data["checkpoint"]) if "checkpoint" in data else ()
            self.manifest.complete_stage(phase, name, data, files, seconds=time.perf_counter() - started)
            self.log.log(phase, name, flat_numbers(data))
        for result in list(self.manifest.data(phase, name).get("splits", {}).values())[:1]:
            if result["success"] is not None:
                self.progress.result(phase, result["success"])

    def _clone(self, phase: int) -> dict[str, Any]:
        """Clone demonstrations, unless the recipe starts from a policy that has been through this."""
        data: dict[str, Any] = {}
        if self.system.clones:
            specs = self.tasks.demonstrations("clone", self.recipe.warm_start.demonstrations)
            data = episode_data(specs, self._play(specs, "browserless"), self.buffer)
            data["metrics"] = self.system.call("clone", data["episodes"])
        self.system.checkpoint(CLONED)
        return {"checkpoint": CLONED, **data}

    def _pretrain_critics(self, phase: int) -> dict[str, Any]:
        """Teach the critics before the first phase: progress on flawless, the value on imperfect demonstrations."""
        self.system.restore(CLONED)
        settings, algorithm = self.recipe.warm_start, self.system.algorithm
        specs: dict[str, list[EpisodeSpec]] = {}
        if algorithm.needs_potential:
            specs["potential"] = self.tasks.demonstrations(
                "potential", settings.potential_demonstrations, flawless=True
            )
        if algorithm.needs_value and settings.value_demonstrations:
            specs["value"] = self.tasks.demonstrations("value", settings.value_demonstrations)
        asked = [spec for wanted in specs.values() for spec in wanted]
        data = episode_data(asked, self._play(asked, "browserless"), self.buffer)
        played = set(data["episodes"])
        data["metrics"] = {
            critic: self.system.call(
                f"pretrain_{critic}", sorted(spec.episode_id for spec in wanted if spec.episode_id in played)
            )
            for critic, wanted in specs.items()
        }
        self.system.checkpoint(checkpoint_name(0))
        return {"checkpoint": checkpoint_name(0), **data}

    def _rollouts(self, phase: int) -> dict[str, Any]:
        """Play the phase's tasks with the current policy; episodes that an earlier attempt finished are kept."""
        specs = self._rollout_specs(phase)
        data = episode_data(specs, self._play(specs, self.recipe.run.environment), self.buffer)
        if not data["episodes"]:
            raise RunStopped(
                f"phase {phase}: none of {len(specs)} episodes has a verdict, so there is nothing to learn from; they "
                f"failed by {data['failures']}: mend what that names and start the same command again"
            )
        return data

    def _replay(self, phase: int) -> dict[str, Any]:
        """Filter the successes of earlier phases by their perplexity under the current policy."""
        fresh = self.manifest.data(phase, "rollouts")["episodes"]
        wanted = self.system.algorithm.data_choice.replay
        stored = self.buffer.successes(phases=range(1, phase)) if wanted != "none" else ()
        settings = self.recipe.replay
        kept, audit = band_filter(
            self.system.call("score", stored) if stored else (),
            low=settings.perplexity_low if wanted == "perplexity" else 1.0,
            high=settings.perplexity_high if wanted == "perplexity" else sys.float_info.max,  # the audit is JSON
            per=settings.per,
            cap=settings.cap(self._units(fresh)),
            seed=self.recipe.run.seed * 1000 + phase,
        )
        return {"kept": {unit.episode_id: list(unit.steps) for unit in kept}, "audit": audit.summary()}

    def _learn(self, phase: int) -> dict[str, Any]:
        """Train both critics, shape the advantages, train the actor (Alg. 1); then write a checkpoint."""
        fresh = self.manifest.data(phase, "rollouts")["episodes"]
        kept = self.manifest.data(phase, "replay")["kept"]
        replayed = [Kept(episode_id, tuple(steps)) for episode_id, steps in kept.items()]
        metrics = self.system.call("phase", fresh, replayed, phase, self.recipe.run.seed)
        losses = {part: metrics[part]["loss"] for part in ("value", "potential", "actor") if metrics[part]}
        self.progress.losses({part: loss for part, loss in losses.items() if loss is not None})
        self.system.checkpoint(checkpoint_name(phase))
        return {"checkpoint": checkpoint_name(phase), "metrics": metrics}

    def _publish(self, phase: int) -> dict[str, Any]:
        """Publish the weights as version ``phase`` to every server, as a transaction."""
        return self.system.publish(phase)

    def _evaluate(self, phase: int) -> dict[str, Any]:
        """Play the held-out tasks, where the recipe asks for it after this phase."""
        settings, last = self.recipe.run.evaluation, phase == self.recipe.run.phases
        if phase % settings.every and not last:
            return {"splits": {}}
        specs = self.tasks.evaluation(phase, screenshots=settings.screenshots if last else 0)
        report = self._play(specs, self.recipe.run.environment)
        results = split_data(specs, settings.splits, report, self.buffer, settings.passes)
        return {"splits": results, **episode_data(specs, report, self.buffer)}

    def _curriculum(self, phase: int) -> dict[str, Any]:
        """Choose the next phase's tasks by what failed in this one."""
        failures = self.buffer.failed_instructions(sources=(Source.ROLLOUT,), phases=(phase,))
        played = self._rollout_specs(phase)
        values: dict[str, float] = {}
        if self.recipe.curriculum.value_band:
            critics = self.system.call("critics", self.manifest.data(phase, "rollouts")["episodes"])
            values = {self.buffer.entry(episode_id).task_id: v[0] for episode_id, (_, v) in critics.items()}
        return self.tasks.choose(phase + 1, [failure.task_id for failure in failures], played, values)

    def _units(self, episode_ids: list[str]) -> int:
        """Return how many units of the replay filter these episodes hold."""
        if self.recipe.replay.per == "trajectory":
            return len(episode_ids)
        return sum(len(episode.steps) for episode in self.buffer.trajectories(episode_ids))

    def _rollout_specs(self, phase: int) -> list[EpisodeSpec]:
        chosen = self.manifest.data(phase - 1, "curriculum")["tasks"] if phase > 1 else None
        return self.tasks.rollouts(phase, chosen)

    def _play(self, specs: list[EpisodeSpec], driver: str) -> RolloutReport:
        report = self.system.play(specs, self.buffer, self.progress, driver=driver)
        self.buffer.refresh()
        return report

    def _go_on_from_last_checkpoint(self) -> None:
        """Bring learner and servers to the newest recorded checkpoint, before any episode is played."""
        phase, stage = max((p, s) for p, s in self.manifest.stages() if s in ("critics", "learn"))
        self.manifest.check_files(phase, stage)
        self.system.restore(self.manifest.data(phase, stage)["checkpoint"])
        if self.manifest.stage_done(phase, "publish"):
            self.system.publish(phase)
