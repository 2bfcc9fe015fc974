"""What can be configured about judging; imports only the standard library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class JudgeSettings:
    """How finished episodes are judged."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    rules: str = "webarena"
    """Dialect of WebArena's rules, a name in ``judges.rules.RULE_SETS``: ``webarena`` or ``webarena_lite``."""
