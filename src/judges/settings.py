"""How long a judge of meaning is waited for.

Owns ``JudgeSettings``. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class JudgeSettings:
    """Deadlines of one episode's questions to a judge of meaning."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    answer_timeout_s: float = 12.0
    """Longest wait for one answer, in seconds."""
    deadline_s: float = 25.0
    """Longest wait for all answers of one episode with their repetitions, in seconds; less than
    ``rollout.judge_deadline_s``, so that the failure names the judge."""
    retry_wait_s: float = 0.5
    """Pause before a question is asked again, in seconds; it doubles each time."""
