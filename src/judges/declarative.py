"""Declarative milestone checks as a judge of milestones.

Owns the judge ``declarative``; the checks themselves are ``judges.milestones``.
"""

from __future__ import annotations

from collections.abc import Sequence

from judges.kinds import JudgeKind, Judges
from judges.milestones import Acted, reached
from plugs.options import NoOptions
from records import failure_codes as codes
from records.environment import Observation
from records.episodes import Milestone
from records.failures import EpisodeFailed, Failure


class DeclarativeChecks:
    """Judges milestones by the check that each of them brings."""

    async def reached(
        self,
        milestones: Sequence[Milestone],
        previous: Sequence[bool],
        observation: Observation,
        history: Sequence[Acted],
    ) -> tuple[bool, ...]:
        """Return the milestone vector (K,); raise ``EpisodeFailed`` (task) for a check that cannot be read."""
        try:
            return reached(milestones, previous, observation, history)
        except ValueError as error:
            raise EpisodeFailed(Failure(codes.MALFORMED_MILESTONE, str(error))) from error


def _make(settings: NoOptions, judges: Judges) -> DeclarativeChecks:
    return DeclarativeChecks()


DECLARATIVE = JudgeKind(settings=NoOptions, make=_make)
"""The judge ``declarative``."""
