"""Where a run is, as plain numbers: what the progress display shows.

Owns the arithmetic of rates and of the time left; pure (times are passed in, in seconds), so that it
is tested without a terminal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from learner.headway import Headway


@dataclass
class StageState:
    """The running stage: ``done`` of ``total`` units (0 where unknown), its episodes, and how far the learner is.

    ``ahead`` says how far the next phase's rollouts are.
    """

    name: str
    started: float
    total: int = 0
    done: int = 0
    judged: int = 0
    succeeded: int = 0
    lost: int = 0
    steps: int = 0
    headway: Headway | None = None
    ahead: str = ""

    @property
    def success(self) -> float | None:
        """Success so far over judged episodes, None before the first verdict."""
        return self.succeeded / self.judged if self.judged else None

    def steps_per_second(self, now: float) -> float | None:
        """Environment steps per second since the stage began, None before the first step."""
        elapsed = now - self.started
        return self.steps / elapsed if self.steps and elapsed > 0 else None


@dataclass
class RunState:
    """The whole run. Phase 0 is the warm start; ``phases`` more follow."""

    phases: int
    started: float
    phase: int = 0
    phase_started: float = 0.0
    stage: StageState | None = None
    waiting: str = ""
    losses: dict[str, float] = field(default_factory=dict)
    results: dict[int, float] = field(default_factory=dict)
    phase_seconds: list[float] = field(default_factory=list)
    stage_seconds: dict[str, float] = field(default_factory=dict)

    def begin_phase(self, phase: int, now: float) -> None:
        """Close the running phase, if any, and start another."""
        self.end_phase(now)
        self.phase, self.phase_started = phase, now

    def begin_stage(self, name: str, total: int, now: float) -> None:
        """Close the running stage, if any, and start another."""
        self.end_stage(now)
        self.stage = StageState(name, now, total)

    def end_stage(self, now: float) -> None:
        """Remember how long the running stage took."""
        if self.stage is not None:
            self.stage_seconds[self.stage.name] = now - self.stage.started
            self.stage = None

    def end_phase(self, now: float) -> None:
        """Remember how long the running phase took; the warm start is no guide to the others."""
        self.end_stage(now)
        if self.phase_started and self.phase > 0:
            self.phase_seconds.append(now - self.phase_started)
        self.phase_started = 0.0

    def seconds_left(self, now: float) -> float | None:
        """Return the seconds until the run ends, from the last phase's duration; None before one is complete.

        Within a phase that takes longer than the last one the estimate never becomes negative.
        """
        if not self.phase_seconds or not self.phase_started:
            return None
        expected = self.phase_seconds[-1]
        remaining_here = max(expected - (now - self.phase_started), self._stage_left(now))
        return remaining_here + expected * (self.phases - self.phase)

    def _stage_left(self, now: float) -> float:
        stage = self.stage
        if stage is None or not stage.done or not stage.total:
            return 0.0
        return (now - stage.started) * max(0, stage.total - stage.done) / stage.done


def duration(seconds: float) -> str:
    """Return seconds as a person writes them: ``42 s``, ``3 min 05 s``, ``1 h 02 min``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
