"""An episode as the failure analyzer looks at it: which states it went through, and what it did in each.

Owns ``Move`` and ``Route``, and how two actions are compared. Invariants: an action names its element by role and
name, because numbers of elements differ from page to page; a route is a few hundred bytes, so that those of a whole
run fit in memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from records.cycles import bare_action, state_hash
from records.episodes import EpisodeHeader, Source, Step, Termination, Trajectory

_ELEMENT = re.compile(r',?\s*element\s*=\s*"?(\d+)"?')
_ARGUMENT = re.compile(r'\b(?:argument|message)\s*=\s*("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class Move:
    """One action in one state.

    ``action`` is the call with its element by role and name. ``form`` is the action as episodes of one template share
    it: without its argument, and with ``*`` for an element that the instruction names. ``understood`` says that it
    parsed and that its element was there; ``reached`` how many milestones held before it.
    """

    state: str
    action: str
    form: str
    understood: bool
    reached: int

    @classmethod
    def of(cls, step: Step, intent: str) -> Move:
        """Return the move of a recorded step under this instruction."""
        call = bare_action(step.action_text)
        targeted = _ELEMENT.search(call) is not None
        bare = _ELEMENT.sub("", call)
        role, _, name = (step.element or "").partition(" ")
        named = bool(name) and name.casefold() in intent.casefold()
        form = f"{_ARGUMENT.sub('', bare)} on {role} {'*' if named else name}"
        understood = step.parse_error is None and (step.element is not None or not targeted)
        state = state_hash(step.url, step.observation)
        return cls(state, f"{bare} on {step.element or ''}", form, understood, sum(step.milestones))


@dataclass(frozen=True, slots=True)
class Route(EpisodeHeader):
    """An episode with its moves.

    ``milestones`` has the milestone vector before each move and, last, after all of them. ``outcome`` is None where
    there is no verdict, and ``lost`` then says why, as ``kind/code``. ``horizon`` is the expert's number of actions, 0
    where there is none. ``stood_still`` says that its ending was ``standstill``.
    """

    policy_version: int
    horizon: int
    outcome: float | None
    lost: str
    exited: bool
    stood_still: bool
    moves: tuple[Move, ...]
    milestones: tuple[tuple[bool, ...], ...]

    @classmethod
    def of(cls, episode: Trajectory) -> Route:
        """Return the route of a recorded episode."""
        return cls(
            episode.episode_id, episode.task_id, episode.template, episode.site, episode.split, episode.intent,
            episode.source, episode.phase, episode.policy_version, episode.horizon, episode.outcome,
            f"{episode.failure.code}" if episode.failure else "",
            episode.termination is Termination.EXIT, episode.termination is Termination.STANDSTILL,
            tuple(Move.of(step, episode.intent) for step in episode.steps),
            (*(step.milestones for step in episode.steps), episode.final_milestones),
        )  # fmt: skip

    @property
    def success(self) -> bool:
        """Whether a verdict exists and says that the task was solved."""
        return self.outcome == 1.0

    @property
    def failed(self) -> bool:
        """Whether a verdict exists and says that the task was not solved."""
        return self.outcome is not None and not self.success

    @property
    def demonstrated(self) -> bool:
        """Whether no policy played it."""
        return self.source is Source.DEMONSTRATION

    @property
    def complete_at(self) -> int | None:
        """Return the index of the first move before which all milestones held; None where they never did.

        The number of moves where they did only after the last one; None where there are no milestones.
        """
        return next((index for index, reached in enumerate(self.milestones) if reached and all(reached)), None)
