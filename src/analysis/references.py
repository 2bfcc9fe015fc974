"""Successes that failed episodes are held against: of the same task, or else of the same template.

Owns ``References``. Invariants: a success of another task of the template is compared by the form of its actions
only, one of the same task by the actions themselves; demonstrations count as much as a policy's own successes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from analysis.routes import Move, Route


class References:
    """Successful routes, by task and by template."""

    def __init__(self, routes: Iterable[Route]) -> None:
        """Keep the successes among ``routes``."""
        self._by_task: dict[str, list[Route]] = defaultdict(list)
        self._by_template: dict[str, list[Route]] = defaultdict(list)
        for route in routes:
            if route.success and route.moves:
                self._by_task[route.task_id].append(route)
                self._by_template[route.template].append(route)

    def of_task(self, route: Route) -> Sequence[Route]:
        """Return the successes of the route's own task."""
        return self._by_task.get(route.task_id, ())

    def divergence(self, route: Route) -> tuple[int, str] | None:
        """Return the first move that no success makes after the same moves, and what it was held against.

        The number of moves where the route ends before it leaves every success. None where there is no success.
        """
        if own := self.of_task(route):
            return _shared(route, own, lambda move: move.action), "successes of the task"
        if others := self._by_template.get(route.template):
            return _shared(route, others, lambda move: move.form), "successes of the template"
        return None

    def begins_nowhere(self, route: Route) -> bool:
        """Whether the first action is none that any success of the template takes at any time; False without any."""
        successes = self._by_template.get(route.template, [])
        known = {move.form for success in successes for move in success.moves}
        return bool(known) and route.moves[0].form not in known

    def exit_state(self, route: Route) -> int | None:
        """Return the first move made in the very state in which a success of the task ends; None without one."""
        ends = {success.moves[-1].state for success in self.of_task(route)}
        return next((index for index, move in enumerate(route.moves) if move.state in ends), None)


def _shared(route: Route, successes: Iterable[Route], key: Callable[[Move], str]) -> int:
    """Return the length of the longest beginning that the route shares with one of the successes."""
    return max(_common(list(map(key, route.moves)), list(map(key, success.moves))) for success in successes)


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    pairs = zip(first, second, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))
