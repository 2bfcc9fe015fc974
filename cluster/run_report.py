"""The report page of a run, filled from its manifest and its episodes.

Owns which episodes are shown. Needs the running learner for the critics' predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from analysis.failures import failure_report
from analysis.report import EpisodeView, Report, pictures_in, render
from analysis.settings import AnalysisSettings
from cluster.failure_analysis import routes_of
from cluster.recipe.recipe import Recipe
from cluster.run_folder.durable import write_atomic
from cluster.run_folder.layout import REPORT
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.recorded_files import recorded_files
from cluster.run_folder.summarising import summarise
from cluster.system import System
from cluster.task_sets import TaskSets
from policy.prompts import without_stop
from policy.tokenizer import TextTokenizer
from records.episodes import Step
from replay.buffer import ReplayBuffer
from rollout_workers.spec import EpisodeSpec


def write_report(recipe: Recipe, manifest: RunManifest, system: System, tasks: TaskSets) -> Path:
    """Write ``OUT/report.html`` and return its path."""
    summary = summarise(manifest, recipe.run.name, recipe.run.phases)
    buffer = ReplayBuffer(system.folders.episodes)
    buffer.record(recorded_files(manifest.entries()))
    report = Report(
        title=f"Waymark run {recipe.run.name}",
        facts=(
            ("algorithm", recipe.learner.algorithm),
            ("recipe", manifest.config_hash[:16]),
            ("seed", str(recipe.run.seed)),
            ("environment", recipe.run.environment),
            ("commit", manifest.header["versions"].get("commit") or "unknown"),
            *((f"language model {account.name}", account.line()) for account in summary.judging),
        ),
        phases=summary.phases,
        counts=summary.episodes,
        episodes=_episodes(recipe, buffer, system, tasks),
        failures=failure_report(recipe.run.name, routes_of(buffer), AnalysisSettings()),
    )
    path = manifest.out / REPORT
    write_atomic(path, render(report))
    return path


def _episodes(recipe: Recipe, buffer: ReplayBuffer, system: System, tasks: TaskSets) -> tuple[EpisodeView, ...]:
    """Return the episodes of the last evaluation that have pictures, the longest first."""
    settings = recipe.run.evaluation
    specs = tasks.evaluation(recipe.run.phases, screenshots=settings.screenshots)
    shown: list[EpisodeSpec] = [spec for spec in specs if spec.screenshots and spec.episode_id in buffer]
    ids = [spec.episode_id for spec in shown]
    answers = {critic: system.learner.ask(critic, ids) for critic in system.algorithm.critics}
    picture, said = pictures_in(system.folders.screenshots), _replies(recipe, system)
    views = []
    for spec, episode in zip(shown, buffer.trajectories(ids), strict=True):
        critics = {critic: found[spec.episode_id] for critic, found in answers.items()}
        names = [milestone.description for milestone in spec.task.milestones]
        views.append(EpisodeView.of(episode, names, critics, picture, said))
    return tuple(sorted(views, key=lambda view: -len(view.steps)))


def _replies(recipe: Recipe, system: System) -> Callable[[Step], str]:
    """Return what tells a step's reply; thoughts are recorded as ids alone."""
    if not recipe.policy.thinking:
        return lambda step: step.action_text
    tokenizer = TextTokenizer.load(system.folders.policy)
    return lambda step: tokenizer.decode(without_stop(tokenizer, step.action_ids.tolist()))
