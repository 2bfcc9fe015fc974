"""What the user sees while a run works: a live panel in a terminal, plain lines elsewhere.

Owns rendering of ``RunState``. Invariants: nothing here decides anything; all output goes through
one rich console; text from outside is read neither as markup nor as orders to the terminal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cluster.display.run_state import RunState, StageState, duration
from learner.headway import Headway
from records.terminal import printable

_FILE_WIDTH = 140


class RunDisplay:
    """Context manager that shows a run; the controller calls the verbs below.

    ``console`` decides the form: a live panel where it is a terminal, otherwise a line at each
    stage's start and end and every ``line_interval_s`` seconds in between. ``phases`` counts the
    phases after the warm start.
    """

    def __init__(
        self,
        phases: int,
        console: Console | None = None,
        line_interval_s: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = console or _console()
        self._clock = clock
        self._state = RunState(phases=phases, started=clock())
        self._line_interval_s = line_interval_s
        self._last_line = clock()
        self._fresh_losses = False
        self._live: Live | None = None
        if self.console.is_terminal:
            self._live = Live(get_renderable=self._panel, console=self.console, refresh_per_second=4, transient=True)

    def phase(self, phase: int) -> None:
        """A phase begins; 0 is the warm start."""
        self._close_stage()
        self._state.begin_phase(phase, self._clock())

    def stage(self, name: str, total: int = 0) -> None:
        """A stage of the phase begins; ``total`` is its number of episodes or other units, 0 where unknown."""
        self._close_stage()
        self._state.begin_stage(name, total, self._clock())
        self._line(f"{self._where()}: {name}" + (f" (0/{total})" if total else ""))

    def update(
        self, done: int, *, total: int | None = None, judged: int = 0, succeeded: int = 0, lost: int = 0, steps: int = 0
    ) -> None:
        """The stage's counts so far (totals, not increments); ``lost`` episodes have no verdict."""
        stage = self._state.stage
        if stage is None:
            return
        stage.done, stage.judged, stage.succeeded, stage.lost, stage.steps = done, judged, succeeded, lost, steps
        if total is not None:
            stage.total = total
        if self._clock() - self._last_line >= self._line_interval_s:
            self._line(f"{self._where()}: {stage.name} {self._counts(stage)}")

    def asked(self, done: int, total: int, lost: int) -> None:
        """How many questions to judges are answered so far, and how many of them by a failure."""
        self.update(done, total=total, lost=lost)

    def headway(self, headway: Headway) -> None:
        """How far the learner is in the stage."""
        stage = self._state.stage
        if stage is None or not headway.planned:
            return
        stage.headway = headway
        if self._clock() - self._last_line >= self._line_interval_s:
            self._line(f"{self._where()}: {stage.name} {_headway_text(headway)}")

    def ahead(self, done: int, total: int) -> None:
        """How many of the next phase's rollouts are done while the stage works."""
        stage = self._state.stage  # the stage may end meanwhile: this is told by another thread
        if stage is not None:
            stage.ahead = f"{done}/{total}"

    def waiting(self, what: str) -> None:
        """Processes that wait for a node, with what they declare; empty where none does."""
        self._state.waiting = what
        self.note(f"Waiting for nodes: {what}" if what else "Every process has a node.")

    def losses(self, values: Mapping[str, float]) -> None:
        """The newest losses, by name."""
        self._state.losses.update(values)
        self._fresh_losses = True

    def result(self, phase: int, success: float) -> None:
        """Held-out success after ``phase`` in [0, 1]."""
        self._state.results[phase] = success

    def note(self, text: str) -> None:
        """A line worth keeping in the scroll-back, such as a replaced worker."""
        self.console.print(Text(printable(text)), soft_wrap=True)

    def finish(self) -> None:
        """The last phase is complete."""
        self._close_stage()
        self._state.end_phase(self._clock())

    def __enter__(self) -> RunDisplay:
        """Start showing."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing and leave the terminal as it was."""
        if self._live is not None:
            self._live.stop()

    def _close_stage(self) -> None:
        stage, now = self._state.stage, self._clock()
        if stage is None:
            return
        counts = self._counts(stage)
        losses = _losses_text(self._state.losses) if self._fresh_losses else ""
        self._fresh_losses = False
        self._state.end_stage(now)
        parts = [f"{self._where()}: {stage.name} done in {duration(now - stage.started)}", counts, losses]
        self._line(", ".join(part for part in parts if part))

    def _line(self, text: str) -> None:
        """Print a line where there is no live panel."""
        self._last_line = self._clock()
        if self._live is None:
            left = self._state.seconds_left(self._clock())
            ends = f" [{duration(left)} left]" if left is not None else ""
            self.console.print(Text(printable(text + ends)), soft_wrap=True)

    def _where(self) -> str:
        state = self._state
        return f"phase {state.phase}/{state.phases}" if state.phase else "warm start"

    def _counts(self, stage: StageState) -> str:
        parts = [f"{stage.done}/{stage.total}" if stage.total else str(stage.done)] if stage.done else []
        if stage.success is not None:
            parts.append(f"success {stage.success:.1%}")
        if stage.lost:
            parts.append(f"{stage.lost} lost")
        rate = stage.steps_per_second(self._clock())
        if rate is not None:
            parts.append(f"{rate:.1f} steps/s")
        return ", ".join(parts)

    def _panel(self) -> RenderableType:
        state, now = self._state, self._clock()
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim", no_wrap=True)
        rows.add_column()
        stage = state.stage
        if stage is not None:
            rows.add_row("stage", Text(f"{stage.name}  {self._counts(stage)}"))
            if stage.total:
                rows.add_row("", ProgressBar(total=stage.total, completed=stage.done, width=40))
            if stage.headway is not None:
                rows.add_row("learner", Text(_headway_text(stage.headway)))
        if stage is not None and stage.ahead:
            rows.add_row("ahead", Text(f"{stage.ahead} rollouts of the next phase"))
        if state.waiting:
            rows.add_row("waiting", Text(printable(f"for nodes: {state.waiting}")))
        if state.losses:
            rows.add_row("losses", Text(printable(_losses_text(state.losses))))
        if state.results:
            trail = "  ".join(f"{_label(phase)} {value:.1%}" for phase, value in sorted(state.results.items()))
            rows.add_row("held-out success", Text(trail))
        left = state.seconds_left(now)
        remaining = duration(left) if left is not None else "known after the first phase"
        rows.add_row("time", Text(f"{duration(now - state.started)} so far, left: {remaining}"))
        hint = Text("Ctrl-C stops cleanly; the same command goes on from there", style="dim")
        return Panel(Group(rows, hint), title=Text(f" {self._where()} "), title_align="left", border_style="cyan")


def _console() -> Console:
    """Return a console as wide as the terminal; in a file or a pipe wide enough for the tables."""
    console = Console()
    return console if console.is_terminal else Console(width=_FILE_WIDTH)


def _label(phase: int) -> str:
    return f"after {phase}:" if phase else "before RL:"


def _headway_text(headway: Headway) -> str:
    return f"{headway.training}: {headway.done}/{headway.planned} updates, {headway.tokens:,} tokens"


def _losses_text(losses: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in losses.items())
