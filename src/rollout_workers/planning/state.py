"""What a planning agent knows of its episode: plan, milestone state, moves, pages seen, what was asked.

Owns ``PlanState`` and its files. Invariants: a state is plain JSON with a schema version, and an agent that is given
one back decides as it would have without the interruption; what is reached stays reached; a page that is not kept any
more leaves a line. Pages are data: nothing in them is evaluated.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from records.cycles import bare_action
from records.durable import read_text, replace_file
from records.texts import file_name, storable
from replay.stuck import Move, Stuck, share_reached, state_key, stuck
from rollout_workers.agent import Turn
from rollout_workers.settings import PlanningSettings


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SeenPage(_Strict):
    """A page that the agent saw before step ``step``, and the ``feedback`` it was given with it."""

    step: int
    url: str
    title: str
    text: str
    feedback: str = ""

    @property
    def line(self) -> str:
        """What stays of the page when it is not kept any more."""
        told = f"; told: {self.feedback}" if self.feedback else ""
        return f"step {self.step}: {self.title} ({self.url}){told}"


class StuckEvent(_Strict):
    """The agent was stuck before step ``step``."""

    step: int
    how: Stuck


class Usage(_Strict):
    """What a language model was asked for an episode; ``thought`` counts questions with a thinking budget."""

    questions: int = 0
    thought: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0


class PlanState(_Strict):
    """The state of one episode's planning agent.

    ``potential`` is what a critic says of the newest page, where one is asked. ``window_start`` is the first move since
    the last event; the moves before ``tried_end`` are not to be repeated. ``summaries`` stand for the pages before
    ``pages``.
    """

    schema_version: Literal[1] = 1
    episode_id: str
    milestones: list[str] = Field(default_factory=list)
    reached: list[bool] = Field(default_factory=list)
    potential: float | None = None
    moves: list[Move] = Field(default_factory=list)
    window_start: int = Field(default=0, ge=0)
    tried_end: int = Field(default=0, ge=0)
    events: list[StuckEvent] = Field(default_factory=list)
    replans: int = 0
    retries: int = 0
    pages: list[SeenPage] = Field(default_factory=list)
    summaries: list[str] = Field(default_factory=list)
    usage: Usage = Field(default_factory=Usage)

    @model_validator(mode="after")
    def _consistent(self) -> PlanState:
        if len(self.reached) != len(self.milestones):
            raise ValueError(f"reached: expected {len(self.milestones)} values, found {len(self.reached)}")
        if max(self.window_start, self.tried_end) > len(self.moves):
            raise ValueError(f"pointers: expected at most {len(self.moves)}, the number of moves")
        return self

    @property
    def progress(self) -> float | None:
        """What the critic says; without one the share of milestones that are reached, None where there are none."""
        return share_reached(self.reached) if self.potential is None else self.potential

    @property
    def current(self) -> int | None:
        """The index of the first milestone that is not reached; None where all are."""
        return next((i for i, done in enumerate(self.reached) if not done), None)

    def see(self, turn: Turn, keep: int) -> None:
        """Take in the page of a turn; of those beyond the newest ``keep``, a line is left."""
        seen = turn.observation
        self.pages.append(
            SeenPage(
                step=turn.index,
                url=storable(seen.url),
                title=storable(seen.title),
                text=storable(seen.text),
                feedback=storable(turn.feedback or ""),
            )
        )
        self.summaries += [page.line for page in self.pages[:-keep]]
        self.pages = self.pages[-keep:]

    def look(self, step: int, settings: PlanningSettings) -> Stuck | None:
        """Return how the agent is stuck before ``step``, and note it; what was tried counts until there is progress."""
        if self.tried_end and _risen(self.moves[self.tried_end - 1].progress, self.progress, settings.epsilon):
            self.tried_end = 0
        found = stuck(self.moves[self.window_start :], self.progress, epsilon=settings.epsilon, window=settings.window)
        if found:
            self.events.append(StuckEvent(step=step, how=found))
            self.window_start = len(self.moves)
        return found

    def tried(self, turn: Turn, action_text: str) -> bool:
        """Whether the action is one of those that are not to be repeated in this state."""
        here, action = state_key(turn.observation.url, turn.observation.text), bare_action(action_text)
        return any((move.state, move.action) == (here, action) for move in self.moves[: self.tried_end])

    def moved(self, turn: Turn, action_text: str) -> None:
        """Take in what was decided on a turn."""
        here = state_key(turn.observation.url, turn.observation.text)
        self.moves.append(Move(here, storable(bare_action(action_text)), self.progress))


class PlanFolder:
    """The states of a run's planned episodes, one file each, replaced at every step."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def save(self, state: PlanState) -> None:
        """Put the state of an episode on disk, whole or not at all."""
        content = state.model_dump_json(indent=1).encode()
        await asyncio.to_thread(replace_file, self._path(state.episode_id), content)

    def read(self, episode_id: str) -> PlanState | None:
        """Return an episode's state, None where there is none; raise ``ValueError`` where the file holds none."""
        path = self._path(episode_id)
        return PlanState.model_validate_json(read_text(path)) if path.exists() else None

    def _path(self, episode_id: str) -> Path:
        return self._folder / f"{file_name(episode_id)}.json"


def _risen(before: float | None, now: float | None, epsilon: float) -> bool:
    return before is not None and now is not None and now - before >= epsilon
