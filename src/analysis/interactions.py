"""Test-time scaling: success against the number of interactions that an episode is allowed.

Owns ``by_limit``. Invariant: the whole curve comes from one evaluation, and says of each of its points how many
episodes it does not know the end of. Pure functions of routes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.metrics import Rate
from analysis.results import GroupResult
from analysis.routes import Route


@dataclass(frozen=True, slots=True)
class LimitResult:
    """Success of a group of judged episodes, had each been allowed so many interactions and no more.

    ``cut`` counts the failures that their own, lower limit had ended: more interactions might have let them succeed.
    """

    rate: GroupResult
    cut: int


def by_limit(routes: Sequence[Route]) -> dict[str, LimitResult]:
    """Return success at each limit L, from 1 to the most actions in these judged episodes (WebAgent-R1, figure 5).

    An episode counts at L where it succeeded with at most L actions. No prompt tells the limit, so that under L the
    policy would have acted as it did, up to there. Ended at L and judged, an episode may have been solved already with
    its last actions to come; then, and beyond its own limit, the curve is a lower bound.
    """
    longest = max((len(route.moves) for route in routes), default=0)
    return {str(limit): _at(routes, limit) for limit in range(1, longest + 1)}


def _at(routes: Sequence[Route], limit: int) -> LimitResult:
    solved = Rate.of_tasks((route.task_id, route.success and len(route.moves) <= limit) for route in routes)
    cut = sum(route.failed and not route.exited and len(route.moves) < limit for route in routes)
    return LimitResult(GroupResult.of(solved), cut)


def first_and_last(groups: Mapping[str, Mapping[str, LimitResult]]) -> dict[str, Mapping[str, LimitResult]]:
    """Return the curves of the first and of the last evaluation out of all, whose names are ``evaluation N, split``."""
    evaluations = list(dict.fromkeys(name.partition(",")[0] for name in groups))
    ends = {*evaluations[:1], *evaluations[-1:]}
    return {name: curve for name, curve in groups.items() if name.partition(",")[0] in ends}
