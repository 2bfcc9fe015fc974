"""Runs stages that are not recorded yet, records them, and brings a run that was cut short to where it goes on.

Owns what surrounds every stage. Invariants: a stage is recorded only after everything it names is durable; a recorded
stage is never run again, unless what it left was damaged and the run was rolled back (``cluster.run_folder.rollback``).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from cluster.display.run_display import RunDisplay
from cluster.monitors.monitor import Monitors
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.metrics_log import FILE_NAME as METRICS
from cluster.run_folder.metrics_log import read_metrics
from cluster.run_folder.recorded_files import recorded_files
from cluster.run_folder.rollback import roll_back, set_unusable_aside
from cluster.run_folder.stage_results import (
    Evaluated,
    Published,
    R,
    ReplayFiltered,
    StageResult,
    WithCheckpoint,
    WithEpisodes,
)
from cluster.system import System
from replay.labelled import LabelledBuffer
from replay.packing import pack, tidy
from telemetry import meter, table


class StageRunner:
    """The stages of one run; ``labelled`` has its episodes and their labels.

    ``pack_above`` is ``ReplaySettings.pack_above``.
    """

    def __init__(
        self,
        manifest: RunManifest,
        system: System,
        labelled: LabelledBuffer,
        display: RunDisplay,
        monitors: Monitors,
        pack_above: int,
    ) -> None:
        self._pack_above = pack_above
        self._manifest = manifest
        self._system = system
        self._buffer = labelled.buffer
        self._labels = labelled.labels
        self._display = display
        self._monitors = monitors

    def run(self, phase: int, kind: type[R], work: Callable[[int], R]) -> R:
        """Return the result of the phase's stage of this kind, by ``work`` where it is not recorded."""
        if not self._manifest.stage_done(phase, kind.stage):
            self._display.stage(kind.stage)
            started = time.perf_counter()
            meter.record(table.PHASE, phase)
            meter.record(table.STAGE, 1, stage=kind.stage)
            try:
                result = work(phase)
            finally:
                meter.record(table.STAGE, 0, stage=kind.stage)
            self._pack(result)
            files = result.files(self._system.folders, self._buffer)
            self._manifest.complete_stage(phase, result, files, seconds=time.perf_counter() - started)
            self._record_files()
            self._monitors.numbers(phase, kind.stage, result.numbers())
            self._measure(result, time.perf_counter() - started)
        result = self._manifest.result(phase, kind)
        if isinstance(result, Evaluated) and result.success is not None:
            self._display.result(phase, result.success)
        return result

    def _pack(self, result: StageResult) -> None:
        """Have few shards in place of the many that a stage's workers wrote; they count once the stage is recorded."""
        if not isinstance(result, WithEpisodes):
            return
        recorded = recorded_files(self._manifest.entries())
        shards = {self._buffer.entry(episode_id).shard.name for episode_id in result.episodes} - set(recorded)
        if 0 < self._pack_above < len(shards):
            packed = pack(self._buffer, result.episodes, recorded)
            self._buffer.record(recorded | dict.fromkeys(packed, len(self._manifest.entries())))

    def _measure(self, result: StageResult, seconds: float) -> None:
        meter.record(table.STAGE_SECONDS, seconds, stage=result.stage)
        meter.record(table.REPLAY, len(self._buffer), part="episodes")
        meter.record(table.REPLAY, len(self._buffer.shards), part="shards")
        if isinstance(result, ReplayFiltered):
            meter.record(table.REPLAYED, len(result.kept))

    def take_up(self) -> None:
        """Go back to before what is damaged, and write down what a killed start had no time for."""
        for found in roll_back(self._manifest, self._buffer, self._monitors):
            self._display.note(found.line)
        set_unusable_aside((*self._buffer.scan.skipped, *self._labels.skipped))  # now no stage depends on them
        self._record_files()
        if not (self._manifest.out / METRICS).is_file():
            return  # without a metrics log nobody knows what was told
        logged = {(line.get("phase"), line.get("stage")) for line in read_metrics(self._manifest.out)}
        for entry in self._manifest.entries():
            if (entry.phase, entry.stage) not in logged:
                self._monitors.numbers(entry.phase, entry.stage, entry.result.numbers())

    def go_on_from_last_checkpoint(self) -> None:
        """Bring learner and servers to the newest recorded state, before any episode is played."""
        done = self._manifest.entries()
        newest = max(at for at, entry in enumerate(done) if isinstance(entry.result, WithCheckpoint))
        for entry in done[newest:]:
            if isinstance(entry.result, WithCheckpoint):
                self._system.learner.load(entry.result.checkpoint)
            elif isinstance(entry.result, Published):
                self._system.publish(entry.phase)

    def _record_files(self) -> None:
        """Let what was recorded count, here and in the learner, whatever a dying worker may still write."""
        files = recorded_files(self._manifest.entries())
        self._buffer.record(files)
        self._labels.record(files)
        self._system.learner.record(files)
        tidy(self._buffer, files)
