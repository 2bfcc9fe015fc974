"""The phase loop: MiRA's outer algorithm (seeds/000, Alg. 2) from top to bottom.

Owns the order of stages. Holds ids and numbers; trajectories stay in their shards. Invariants: a stage
is recorded only after everything it names is durable; a recorded stage is never run again, unless what it left was
damaged and the run was rolled back (``cluster.run_folder.rollback``); whatever happened in between, the same recipe
and folder give the same sequence; no phase is complete before its ledger balances.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cluster.audit.audit import require_balance
from cluster.display.progress import Progress
from cluster.errors import RunStopped
from cluster.recipe.recipe import Recipe
from cluster.run_folder.layout import CLONED, checkpoint_name, critics_name
from cluster.run_folder.ledger import LedgerFile
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.metrics_log import MetricsLog, read_metrics
from cluster.run_folder.rollback import keep_episodes_of, roll_back
from cluster.run_folder.stage_data import episode_data, flat_numbers, recorded_shards, split_data
from cluster.system import System
from cluster.task_sets import TaskSets
from records.episodes import Source
from replay.buffer import ReplayBuffer
from replay.perplexity import Kept, band_filter
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
        ledger: LedgerFile,
    ) -> None:
        self.recipe = recipe
        self.manifest = manifest
        self.system = system
        self.tasks = tasks
        self.progress = progress
        self.log = log
        self.ledger = ledger
        self.buffer = ReplayBuffer(system.folders.episodes)

    def run(self) -> None:
        """Warm-start, then play, filter, learn, publish, evaluate and choose tasks, phase after phase."""
        self._take_up()
        self.progress.phase(0)
        self._stage(0, "clone", self._clone)
        self._stage(0, "critics", self._pretrain_critics)
        self.system.retire("browserless" if self.recipe.run.environment != "browserless" else "")
        self._go_on_from_last_checkpoint()
        self._stage(0, "publish", self._publish)
        self._stage(0, "evaluate", self._evaluate)
        require_balance(self.manifest.out, 0, self.buffer)
        for phase in range(1, self.recipe.run.phases + 1):
            self.progress.phase(phase)
            self._stage(phase, "rollouts", self._rollouts)
            self._stage(phase, "replay", self._replay)
            self._stage(phase, "critics", self._critics)
            self._stage(phase, "actor", self._actor)
            self._stage(phase, "publish", self._publish)
            self._stage(phase, "evaluate", self._evaluate)
            self._stage(phase, "curriculum", self._curriculum)
            require_balance(self.manifest.out, phase, self.buffer)
            self.system.folders.forget_checkpoints(phase, self.recipe.run.keep_checkpoints)
        self.system.learner.export()
        self.progress.finish()

    def _stage(self, phase: int, name: str, work: Callable[[int], dict[str, Any]]) -> None:
        """Run a stage unless it is recorded, and record it."""
        if not self.manifest.stage_done(phase, name):
            self.progress.stage(name)
            started = time.perf_counter()
            data = work(phase)
            self.manifest.complete_stage(phase, name, data, self._files(data), seconds=time.perf_counter() - started)
            self._record_shards()
            self.log.log(phase, name, flat_numbers(data))
        for result in list(self.manifest.data(phase, name).get("splits", {}).values())[:1]:
            if result["success"] is not None:
                self.progress.result(phase, result["success"])

    def _files(self, data: dict[str, Any]) -> list[Path]:
        """Return the files that a stage with this result depends on: its checkpoint, its weights, its shards."""
        files = self.system.folders.checkpoint_files(data["checkpoint"]) if "checkpoint" in data else []
        if "manifest" in data:
            files.append(self.manifest.out / data["manifest"]["path"])
        return files + sorted({self.buffer.entry(episode_id).shard for episode_id in data.get("episodes", ())})

    def _take_up(self) -> None:
        """Go back to before what is damaged, and write down what a killed session had no time for."""
        for found in roll_back(self.manifest, self.buffer, self.log):
            self.progress.note(found.line)
        for skipped in self.buffer.report.skipped:  # now no stage depends on them: their episodes are played again
            skipped.path.rename(skipped.path.with_name(skipped.path.name + ".unusable"))
        self._record_shards()
        logged = {(line.get("phase"), line.get("stage")) for line in read_metrics(self.manifest.out)}
        for phase, name in self.manifest.stages():
            if (phase, name) not in logged:
                self.log.log(phase, name, flat_numbers(self.manifest.data(phase, name)))

    def _record_shards(self) -> None:
        """Let what was recorded count, here and in the learner, whatever a dying worker may still write."""
        shards = recorded_shards(self.manifest.entries())
        self.buffer.record(shards)
        self.system.learner.record(shards)

    def _clone(self, phase: int) -> dict[str, Any]:
        """Clone demonstrations, unless the recipe starts from a policy that has been through this."""
        data: dict[str, Any] = {}
        if self.system.clones:
            specs = self.tasks.demonstrations("clone", self.recipe.warm_start.demonstrations)
            data = episode_data(specs, self._play(phase, "clone", specs, "browserless"), self.buffer)
            data["metrics"] = asdict(self.system.learner.clone(data["episodes"]))
        self.system.learner.save(CLONED)
        return {"checkpoint": CLONED, **data}

    def _pretrain_critics(self, phase: int) -> dict[str, Any]:
        """Teach the critics before the first phase: progress on flawless, the value on imperfect demonstrations."""
        self.system.learner.load(CLONED)
        settings, algorithm = self.recipe.warm_start, self.system.algorithm
        specs: dict[str, list[EpisodeSpec]] = {}
        if "potential" in algorithm.annotators:
            specs["potential"] = self.tasks.demonstrations(
                "potential", settings.potential_demonstrations, flawless=True
            )
        if "value" in algorithm.annotators and settings.value_demonstrations:
            specs["value"] = self.tasks.demonstrations("value", settings.value_demonstrations)
        asked = [spec for wanted in specs.values() for spec in wanted]
        data = episode_data(asked, self._play(phase, "critics", asked, "browserless"), self.buffer)
        played = set(data["episodes"])
        data["metrics"] = {
            critic: self.system.learner.pretrain(
                critic, sorted(spec.episode_id for spec in wanted if spec.episode_id in played)
            ).to_dict()
            for critic, wanted in specs.items()
        }
        self.system.learner.save(checkpoint_name(0))
        return {"checkpoint": checkpoint_name(0), **data}

    def _rollouts(self, phase: int) -> dict[str, Any]:
        """Play the phase's tasks with the current policy; episodes that an earlier attempt finished are kept."""
        specs = self._rollout_specs(phase)
        report = self._play(phase, "rollouts", specs, self.recipe.run.environment)
        data = episode_data(specs, report, self.buffer)
        if not data["episodes"]:
            raise RunStopped(
                f"phase {phase}: none of {len(specs)} episodes has a verdict, so there is nothing to learn from; they "
                f"failed by {data['failures']}: mend what that names and start the same command again"
            )
        return data

    def _replay(self, phase: int) -> dict[str, Any]:
        """Filter the successes of earlier phases by their perplexity under the current policy."""
        fresh = self._counted(phase)
        wanted = self.system.algorithm.data_choice.replay
        earlier = range(1, phase)
        counted = {episode_id for one in earlier for episode_id in self._counted(one)}
        stored = [i for i in self.buffer.successes(phases=earlier) if i in counted] if wanted != "none" else []
        settings = self.recipe.replay
        kept, audit = band_filter(
            self.system.learner.score(stored) if stored else (),
            low=settings.perplexity_low if wanted == "perplexity" else 1.0,
            high=settings.perplexity_high if wanted == "perplexity" else sys.float_info.max,  # the audit is JSON
            per=settings.per,
            cap=settings.cap(self._units(fresh)),
            seed=self.recipe.run.seed * 1000 + phase,
        )
        return {"kept": {unit.episode_id: list(unit.steps) for unit in kept}, "audit": audit.summary()}

    def _critics(self, phase: int) -> dict[str, Any]:
        """Train both critics on this phase's and the replayed episodes (Alg. 1, first half); write a checkpoint."""
        metrics = self.system.learner.update_critics(*self._learned_from(phase), phase, self.recipe.run.seed).to_dict()
        self._show_losses(metrics, *self.system.algorithm.annotators)
        self.system.learner.save(critics_name(phase))
        return {"checkpoint": critics_name(phase), "metrics": metrics}

    def _actor(self, phase: int) -> dict[str, Any]:
        """Shape the advantages with the new critics and train the actor (Alg. 1, second half); write a checkpoint."""
        metrics = self.system.learner.update_actor(*self._learned_from(phase), phase, self.recipe.run.seed).to_dict()
        self._show_losses(metrics, "actor")
        self.system.learner.save(checkpoint_name(phase))
        return {"checkpoint": checkpoint_name(phase), "metrics": metrics}

    def _publish(self, phase: int) -> dict[str, Any]:
        """Publish the weights as version ``phase`` to every server, as a transaction."""
        data = self.system.publish(phase)
        others = keep_episodes_of(phase, data["manifest"]["checksum"], self.manifest, self.buffer)
        if others:
            self.progress.note(others)
        return data

    def _evaluate(self, phase: int) -> dict[str, Any]:
        """Play the held-out tasks, where the recipe asks for it after this phase."""
        settings, last = self.recipe.run.evaluation, phase == self.recipe.run.phases
        if phase % settings.every and not last:
            return {"splits": {}}
        specs = self.tasks.evaluation(phase, screenshots=settings.screenshots if last else 0)
        report = self._play(phase, "evaluate", specs, self.recipe.run.environment)
        results = split_data(specs, settings.splits, report, self.buffer, settings.passes)
        return {"splits": results, **episode_data(specs, report, self.buffer)}

    def _curriculum(self, phase: int) -> dict[str, Any]:
        """Choose the next phase's tasks by what failed in this one."""
        fresh = self._counted(phase)
        counted = set(fresh)
        failures = self.buffer.failed_instructions(sources=(Source.ROLLOUT,), phases=(phase,))
        failed = [failure.task_id for failure in failures if failure.episode_id in counted]
        played = self._rollout_specs(phase)
        values: dict[str, float] = {}
        if self.recipe.curriculum.value_band:
            answers = self.system.learner.ask("value", fresh)
            values = {self.buffer.entry(episode_id).task_id: v[0] for episode_id, v in answers.items()}
        return self.tasks.choose(phase + 1, failed, played, values)

    def _counted(self, phase: int) -> list[str]:
        """Return the rollouts that a phase counts; those of a late shard, or of before a rollback, are none of them."""
        episodes: list[str] = self.manifest.data(phase, "rollouts")["episodes"]
        return episodes

    def _units(self, episode_ids: list[str]) -> int:
        """Return how many units of the replay filter these episodes hold."""
        if self.recipe.replay.per == "trajectory":
            return len(episode_ids)
        return sum(len(episode.steps) for episode in self.buffer.trajectories(episode_ids))

    def _rollout_specs(self, phase: int) -> list[EpisodeSpec]:
        chosen = self.manifest.data(phase - 1, "curriculum")["tasks"] if phase > 1 else None
        return self.tasks.rollouts(phase, chosen)

    def _learned_from(self, phase: int) -> tuple[list[str], list[Kept]]:
        """Return the ids of the phase's episodes, and what the replay filter kept of earlier ones."""
        kept = self.manifest.data(phase, "replay")["kept"]
        fresh = self._counted(phase)
        return fresh, [Kept(episode_id, tuple(steps)) for episode_id, steps in kept.items()]

    def _show_losses(self, metrics: dict[str, Any], *parts: str) -> None:
        losses = {part: metrics[part]["loss"] for part in parts if metrics[part]}
        self.progress.losses({part: loss for part, loss in losses.items() if loss is not None})

    def _play(self, phase: int, stage: str, specs: list[EpisodeSpec], driver: str) -> RolloutReport:
        journal = self.ledger.of(phase, stage)
        report = self.system.play(specs, self.buffer, self.progress, driver=driver, journal=journal)
        self.buffer.refresh()
        return report

    def _go_on_from_last_checkpoint(self) -> None:
        """Bring learner and servers to the newest recorded state, before any episode is played."""
        done = self.manifest.stages()
        newest = max(at for at, stage in enumerate(done) if "checkpoint" in self.manifest.data(*stage))
        self.system.learner.load(self.manifest.data(*done[newest])["checkpoint"])
        for phase, stage in done[newest:]:
            if stage == "publish":
                self.system.publish(phase)
