"""The entry point of a run: ``train``.

Owns what surrounds the phase loop: the lock, the manifest, Ray, signals, the summary and the report.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cluster.boundary import disk_errors, file_log, interruptible
from cluster.display.result_table import result_table
from cluster.display.run_display import RunDisplay
from cluster.errors import ProcessLost
from cluster.monitors.monitor import Monitors
from cluster.placement import demands
from cluster.ray_runtime import metrics_addresses, ray_runtime
from cluster.recipe.recipe import Recipe
from cluster.run_folder.driving import driving
from cluster.run_folder.layout import REPORT, RunFolders, shared_folders
from cluster.run_folder.ledger import LedgerFile
from cluster.run_folder.lock import ELSEWHERE_S, RunLock
from cluster.run_folder.manifest import RunManifest, require_own_folder
from cluster.run_folder.metrics_log import FILE_NAME as METRICS
from cluster.run_folder.resume import Resume
from cluster.run_folder.stage_results import Evaluated, TasksChosen
from cluster.run_folder.stored_run import StoredRun
from cluster.run_folder.summarising import summarise
from cluster.run_folder.summary import FILE_NAME as SUMMARY
from cluster.run_folder.summary import RunSummary, renew_summary, write_summary
from cluster.run_folder.wholeness import not_whole
from cluster.task_sets import TaskSets
from records.stores.folder_store import FolderStore
from records.stores.lease import RunLease
from telemetry import meter

logger = logging.getLogger(__name__)
_SHOWN = 3
_GO_ON = "start the same command again to go on"


def train(recipe: Recipe, out: Path, resume: Resume = Resume.AUTO, uri: str = "") -> None:
    """Run a recipe in the folder ``out``, or what is left of it, and write its summary and report.

    ``uri`` is the address of the run where it is in a store; ``out`` is its working copy then.

    A run that is complete and whole is shown; of one that is not whole any more, what is damaged is made again.

    Raises:
        RunError: see ``cluster.errors``; everything complete is on disk and the same command goes on.
    """
    if not uri:
        require_own_folder(out)
    stored = StoredRun(uri) if uri else None
    store, snapshot = (FolderStore(out), None) if stored is None else (stored.copy.store, stored.renew)
    tell = RunDisplay(recipe.run.phases).note
    with (
        disk_errors(out, _GO_ON),
        interruptible(_kept(out)),
        RunLock(out, tell=tell),
        driving(store, wait_s=ELSEWHERE_S, tell=tell, snapshot=snapshot) as lease,
        _kept_in(stored, lease),
        file_log(out),
    ):
        manifest = RunManifest.open(out, recipe, resume)
        manifest.fence = lease.commit
        if stored is not None:
            manifest.commit = stored.commit
        last = TasksChosen.stage if recipe.run.phases else Evaluated.stage
        if manifest.stage_done(recipe.run.phases, last):
            if not (damaged := not_whole(manifest)):
                _finish(recipe, manifest, RunDisplay(recipe.run.phases), already=True)
                return
            said = f"All stages of this run are complete, but {_listed(damaged)}: what that takes is done again."
            logger.warning("%s", said)
            tell(said)
        lost = 0
        while True:
            before = _got_to(manifest)
            try:
                display = _play_on(recipe, manifest, stored)
                break
            except ProcessLost as error:
                manifest.reload()
                lost = lost + 1 if _got_to(manifest) == before else 1
                if lost > recipe.run.recoveries:
                    raise ProcessLost(f"{error}; start the same command again to go on") from error
                logger.warning("%s", error)
                again = f"All processes are started afresh ({lost} of run.recoveries {recipe.run.recoveries} in a row)."
                RunDisplay(recipe.run.phases).note(f"Lost: {error}\n{again}")
        _finish(recipe, manifest, display)


@contextmanager
def _kept_in(stored: StoredRun | None, lease: RunLease) -> Iterator[None]:
    """Begin with what the store has of a run, and leave there what is in the working copy at the end."""
    if stored is None:
        yield
        return
    stored.take_up(lease)
    try:
        yield
    finally:
        stored.commit()


def _play_on(recipe: Recipe, manifest: RunManifest, stored: StoredRun | None) -> RunDisplay:
    """Start every process of the run, do what is left of it, and end them."""
    out = manifest.out
    tasks = TaskSets(recipe)
    tasks.prepare()
    if stored is not None:
        stored.bring_acknowledged()  # what was played before the processes were lost
    with (
        shared_folders(out, stored) as folders,
        Monitors(out, recipe.monitors) as monitors,
        ray_runtime(recipe) as dashboard,
        interruptible(_kept(out)),  # Ray takes the signals for itself when it starts: take them back
    ):
        from cluster.controller import Controller
        from cluster.node_checks import require_equipped
        from cluster.node_watch import NodeWatch
        from cluster.run_report import write_report
        from cluster.system import System

        if recipe.run.resources.address:
            require_equipped(recipe, folders.mark)
        start = manifest.note_start(recipe)
        with RunDisplay(recipe.run.phases) as display, LedgerFile(out, start) as ledger:
            if start > 1:
                display.note(f"Going on from {len(manifest.stages())} complete stages (start {start} of this run)")
            if dashboard:
                display.note(f"Ray dashboard: http://{dashboard}")
            for what, where in monitors.links().items():
                display.note(f"{what}: {where}")
            if meter.run_name():
                display.note(f"Metrics of actors: {', '.join(metrics_addresses())}")
            display.note(f"Run folder: {out}" if stored is None else f"Run: {stored.copy.uri} (here in {out})")
            with (
                NodeWatch(demands(recipe), recipe.run.node_timeout_s, display.waiting) as nodes,
                System(recipe, folders, tasks, display.headway, nodes) as system,
            ):
                try:
                    Controller(recipe, manifest, system, tasks, display, monitors, ledger).run()
                finally:
                    write_summary(out, _summary(recipe, manifest))
                write_report(recipe, manifest, system, tasks)
    return display


def _got_to(manifest: RunManifest) -> tuple[object, list[str]]:
    """Return what tells whether a start of the processes got anywhere: complete stages, and bookmarks within one."""
    return manifest.stages(), RunFolders(manifest.out).bookmarked()


def _kept(out: Path) -> str:
    return f"stopped; what is complete is in {out}. Start the same command again to go on from there."


def _summary(recipe: Recipe, manifest: RunManifest) -> RunSummary:
    return summarise(manifest, recipe.run.name, recipe.run.phases)


def _finish(recipe: Recipe, manifest: RunManifest, display: RunDisplay, already: bool = False) -> None:
    """Show the table and where everything is."""
    summary = _summary(recipe, manifest)
    if already:
        if renew_summary(manifest.out, summary):
            display.note(f"{SUMMARY} was gone, or not what the run's manifests say, and is written again.")
        display.note(f"This run is complete; nothing is left to do in {manifest.out}.")
    display.console.print(result_table(summary))
    for label, name in (("Report", REPORT), ("Summary", SUMMARY), ("Metrics", METRICS), ("Policy", "trained")):
        if (manifest.out / name).exists():  # a recipe may have no log of metrics
            display.note(f"{label + ':':9}{(manifest.out / name).resolve()}")


def _listed(found: Sequence[str]) -> str:
    more = len(found) - _SHOWN
    return "; ".join([*found[:_SHOWN], *([f"{more} files more"] if more > 0 else [])])
