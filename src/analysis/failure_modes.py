"""How an episode failed, by rules, and the step at which it went wrong (MiRA s. 4).

Owns ``Mode``, the rules and their order. Pure functions of routes. Invariants: only what the evaluator judged a failure
is classified; the rules are tried in the paper's order and the first that holds decides; a step is named only where
there is a reason for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from analysis.references import References
from analysis.routes import Route
from analysis.settings import AnalysisSettings
from records.cycles import Cycle, first_cycle, same_ending


class Mode(StrEnum):
    """The ways to fail, in the order of their rules."""

    WRONG_TERMINATION = "wrong termination"
    STUCK = "stuck midway"
    NO_ATTEMPT = "no reasonable attempt"
    OTHER = "other"


MEANING = {
    Mode.WRONG_TERMINATION: "The agent said that it was done, and the evaluator says that the task is not.",
    Mode.STUCK: "The agent went round in a circle, or repeated one action or said what is none until the end.",
    Mode.NO_ATTEMPT: "The agent gave up sooner than the task can be done, did nothing that leads to it, or did "
    "not exit from the page where it was done.",
    Mode.OTHER: "No rule says how it went wrong.",
}
"""What each mode says of an episode, in a sentence for a person; ``diagnose`` has the exact rules."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """How an episode failed: the mode with the rule that held, and the key step (from 0) with the reason for it.

    ``key_step`` is None where nothing tells which one it was.
    """

    episode_id: str
    mode: Mode
    rule: str
    key_step: int | None
    reason: str


def diagnose(route: Route, references: References, settings: AnalysisSettings) -> Diagnosis:
    """Return how a failed episode failed.

    Raises ``ValueError`` for one that was not judged a failure, or has no moves.
    """
    if not route.failed or not route.moves:
        raise ValueError(f"episode {route.episode_id}: expected a judged failure with moves, found {route.outcome}")
    early = route.exited and _early(route, references, settings)
    if route.exited and not early:
        return _diagnosis(route, Mode.WRONG_TERMINATION, "exited, and the evaluator says no", _left(route, references))
    if stuck := _stuck(route, settings):
        return _diagnosis(route, Mode.STUCK, *stuck)
    if found := _no_attempt(route, references, settings, early=early):
        return _diagnosis(route, Mode.NO_ATTEMPT, *found)
    return _diagnosis(route, Mode.OTHER, "no rule holds", _left(route, references))


KeyStep = tuple[int | None, str]
"""The step at which an episode went wrong, and why that one."""


def _early(route: Route, references: References, settings: AnalysisSettings) -> bool:
    """Whether the exit came among the first steps, and before an expert, or the shortest success, would exit."""
    needed = route.horizon or min((len(success.moves) for success in references.of_task(route)), default=0)
    return len(route.moves) <= settings.early_steps and (not needed or len(route.moves) < needed)


def _stuck(route: Route, settings: AnalysisSettings) -> tuple[str, KeyStep] | None:
    moves = [(move.state, move.action) for move in route.moves]
    cycle = first_cycle(moves, settings.cycle_repeats, settings.longest_cycle)
    same = same_ending([move.action for move in route.moves])
    if same >= settings.same_actions and (cycle is None or cycle.length == 1):
        return f"the last {same} actions are the same", (len(moves) - same, "the first of the same actions")
    if cycle is not None:
        rule = f"a cycle of {cycle.length} actions in the same states comes {_times(moves, cycle)} times in a row"
        return rule, (cycle.start, "the entry of the cycle")
    if route.stood_still and any(move.understood for move in route.moves):
        return _stood_still(route)
    return None


def _stood_still(route: Route) -> tuple[str, KeyStep]:
    """Return which of the two limits ended an episode of some sense, and where what ended it began."""
    actions, understood = [move.action for move in route.moves], [move.understood for move in route.moves]
    if not understood[-1]:
        unread = same_ending(understood)
        return f"ended as the last {unread} replies are no actions", (len(actions) - unread, "the first of them")
    same = same_ending(actions)
    first = len(actions) - same if same > 1 else actions.index(actions[-1])
    return "ended as it only repeats itself", (first, "the first of the same actions")


def _times(moves: list[tuple[str, str]], cycle: Cycle) -> int:
    """Return how often the cycle comes in all: it was found where it had come often enough."""
    end = cycle.start + cycle.length
    while end < len(moves) and moves[end] == moves[end - cycle.length]:
        end += 1
    return (end - cycle.start) // cycle.length


def _no_attempt(
    route: Route, references: References, settings: AnalysisSettings, *, early: bool
) -> tuple[str, KeyStep] | None:
    last = len(route.moves) - 1
    if early:
        return f"exited after {last} other actions", (last, "the exit")
    there = route.complete_at if any(route.milestones) else references.exit_state(route)
    if there is not None and not route.exited:
        return "reached the right page and did not exit", (min(there, last), "an exit was due here")
    first = route.moves[: settings.early_steps]
    if not any(move.understood for move in first):
        return f"the first {len(first)} actions are not actions on the page", (0, "the first of them")
    if references.begins_nowhere(route) and sum(route.milestones[-1]) == route.moves[0].reached:
        return "began with what no success does, and reached nothing", (0, "the first action")
    return None


def _left(route: Route, references: References) -> KeyStep:
    """Return where the route leaves the successes, else where it stopped to come forward, else its exit."""
    last = len(route.moves) - 1
    if (found := references.divergence(route)) is not None:
        return min(found[0], last), f"leaves all {found[1]}"
    if route.exited:
        return last, "the exit; there is no success to hold it against"
    if gains := [i for i in range(1, len(route.milestones)) if sum(route.milestones[i]) > sum(route.milestones[i - 1])]:
        return min(gains[-1], last), "after the last milestone"
    return None, "there is no success to hold it against"


def _diagnosis(route: Route, mode: Mode, rule: str, key: KeyStep) -> Diagnosis:
    return Diagnosis(route.episode_id, mode, rule, *key)
