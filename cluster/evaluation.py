"""The entry point of an evaluation: a policy folder plays the tasks of one split.

Owns what surrounds it, and where it works: among temporary files, or beside its result, with files that every node can
read, where a cluster is joined. Invariants: there is no learner: the weights are published from the folder, with the
checksum and the probe of a snapshot; nothing is left but the result, the episodes where they are to be kept, and of a
failure the log.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from analysis.results import SplitResult
from cluster.boundary import LOG, disk_errors, file_log, interruptible
from cluster.display.run_display import RunDisplay
from cluster.errors import ProcessLost, RunStopped
from cluster.milestones.writing import absent_line, evaluates_with_milestones, tasks_without, with_milestones
from cluster.placement import LEARNER, demands
from cluster.ray_runtime import ray_runtime
from cluster.recipe.recipe import Recipe
from cluster.run_folder.durable import put_folder, require_new, scratch_folder
from cluster.run_folder.layout import RESULT, RunFolders, shared_folders
from cluster.run_folder.named_model import lay_out_model
from cluster.run_folder.played_results import split_results, with_planning
from cluster.run_folder.stage_results import Evaluated
from cluster.task_sets import TaskSets
from policy.publication import Ids, Probe
from policy.published_weights import PublishedWeights
from policy.snapshot import take_snapshot
from records.folder_mark import FolderNotShared
from replay.buffer import ReplayBuffer
from rollout_workers.spec import EpisodeSpec

_SCRATCH = "waymark-eval-"
_STOPPED = "stopped; nothing of an evaluation is kept. Start the same command again to evaluate anew."


def evaluate(recipe: Recipe, *, keep: Path | None = None, steps_factor: int = 1) -> SplitResult:
    """Evaluate as ``recipe``, which ``cluster.recipe.evaluated`` made, says.

    The episodes and the result (``RESULT``) are kept in the folder ``keep``, where one is named; it must not exist yet,
    and is there with all of it or not at all. On a cluster the folder above it is one that every node sees. Each task
    allows ``steps_factor`` times as many actions as it says.

    Raises:
        RecipeError: ``keep`` is there already.
        MissingError: a node of the cluster lacks what it needs, or does not see the folder.
        RunError: see ``cluster.errors``; the same command evaluates anew.
    """
    if keep is not None:
        require_new(keep)
    joined = bool(recipe.run.resources.address)
    with (
        interruptible(_STOPPED),
        _scratch(keep.absolute().parent if joined and keep is not None else None) as out,
        disk_errors(out, "start the same command again"),
        file_log(out),
        shared_folders(out) as folders,
        ray_runtime(recipe),
        interruptible(_STOPPED),  # Ray takes the signals for itself when it starts: take them back
    ):
        if joined:
            from cluster.node_checks import require_equipped  # with Ray, as below

            require_equipped(recipe, folders.mark)
        result = _played(recipe, folders, steps_factor)
        if keep is not None:
            _keep(result, folders, keep)
        return result


def _keep(result: SplitResult, made: RunFolders, keep: Path) -> None:
    scratch = scratch_folder(keep)
    kept = RunFolders(scratch)
    shutil.copytree(made.episodes, kept.episodes)
    for folder, copy in ((made.plans, kept.plans), (made.judging, kept.judging)):  # what was asked, and what it cost
        if folder.exists():
            shutil.copytree(folder, copy)
    (scratch / RESULT).write_text(result.as_json(), encoding="utf-8")
    put_folder(scratch, keep)


def with_longer_tasks(specs: Sequence[EpisodeSpec], factor: int) -> list[EpisodeSpec]:
    """Return the episodes with ``factor`` times the limit of their tasks; a task without one of its own stays so."""
    return [replace(spec, task=replace(spec.task, max_steps=factor * spec.task.max_steps)) for spec in specs]


def _played(recipe: Recipe, folders: RunFolders, steps_factor: int) -> SplitResult:
    """Start the players, publish the policy's weights to them, and play."""
    from cluster.node_watch import NodeWatch
    from cluster.players import Players  # with Ray, which reads its environment when it is first imported

    tasks, settings = TaskSets(recipe), recipe.run.evaluation
    (split,) = settings.splits
    lay_out_model(recipe.policy, folders.policy, for_all_nodes if recipe.run.resources.address else os.symlink)
    with (
        RunDisplay(0) as display,
        NodeWatch(demands(recipe), recipe.run.node_timeout_s, display.waiting) as nodes,
        Players(recipe, folders, tasks, str(folders.policy), nodes) as players,
    ):
        display.phase(0)
        display.stage(Evaluated.stage)
        players.publish(*_snapshot(recipe, folders, players.probes))
        specs, buffer = with_longer_tasks(tasks.evaluation(0), steps_factor), ReplayBuffer(folders.episodes)
        if evaluates_with_milestones(recipe) and (without := tasks_without(specs)):
            written = players.rollouts.write_milestones(without)
            if said := absent_line(written, len(without), recipe.milestones, split):
                display.note(said)
            specs = with_milestones(specs, written.written)
        result = players.rollouts.play(specs, buffer, display, environment=recipe.run.environment)
        buffer.refresh()
        found = split_results(specs, (split,), result, buffer, settings.passes)
        return with_planning(found, specs, buffer, folders.plans, recipe.rollout.planning)[split]


def for_all_nodes(source: Path, target: Path) -> None:
    """Put a file at ``target`` that is read there without ``source``: a second name of it, or a copy elsewhere."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _snapshot(
    recipe: Recipe, folders: RunFolders, asked: Sequence[tuple[Ids, Ids]]
) -> tuple[PublishedWeights, list[Probe]]:
    """Take the snapshot in a process of its own, with the learner's share of the machine and within its limit."""
    import ray

    limit_s = recipe.run.learner_timeout_s
    file = str((folders.weights / "policy.safetensors").resolve())
    folders.weights.mkdir(parents=True, exist_ok=True)
    task = ray.remote(take_snapshot).options(**demands(recipe)[LEARNER].options)
    reply = task.remote(str(folders.policy), file, 0, asked, recipe.learner.device, folders.mark)
    try:
        taken: tuple[PublishedWeights, list[Probe]] = ray.get(reply, timeout=limit_s)
        return taken
    except ray.exceptions.GetTimeoutError as error:
        found = f"reading {recipe.policy.model} took longer than run.learner_timeout_s ({limit_s:g} s)"
        raise ProcessLost(found) from error
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, FolderNotShared):
            raise RunStopped(str(error.cause)) from error
        if isinstance(error.cause, OSError | ValueError):
            raise RunStopped(f"--policy {recipe.policy.model}: cannot be read: {error.cause}") from error
        raise
    except ray.exceptions.RayError as error:
        raise ProcessLost(f"the process that read {recipe.policy.model} ended: {error}") from error


@contextmanager
def _scratch(shared: Path | None) -> Iterator[Path]:
    """Yield a folder that goes when the evaluation ends; of one that stopped itself the log is kept, and named.

    It is a hidden one in ``shared``, or lies where temporary files do.
    """
    with _temporary() if shared is None else _hidden(shared) as folder:
        try:
            yield folder
        except RunStopped as error:
            log = folder / LOG
            if not log.is_file() or not log.stat().st_size:
                raise
            kept = Path(tempfile.gettempdir()) / f"{folder.name.removeprefix('.')}.log"
            shutil.copyfile(log, kept)
            raise type(error)(f"{error}; its log is {kept}") from error


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=_SCRATCH) as folder:
        yield Path(folder)


@contextmanager
def _hidden(shared: Path) -> Iterator[Path]:
    """Yield a hidden folder in ``shared``, open to whoever may read that: other nodes may have another user."""
    folder = shared / f".{_SCRATCH}{uuid4().hex}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # a network file system may keep a name of what was just open
