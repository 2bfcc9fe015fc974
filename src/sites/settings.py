"""Settings of the embedded sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class SitesSettings:
    """Which sites are served, from which seed, and how many tasks are drawn from them."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    names: tuple[str, ...] = ("shop", "forum")
    """Sites that tasks are drawn from; the server serves all that are registered."""
    seed: int = 0
    """Seed of the sites' base data (products, threads, users); tasks must be drawn over the same seed."""
    task_seed: int = 0
    """Seed of the task parameters that are drawn."""
    train_tasks: int = 400
    """Number of tasks in the training pool."""
    validation_tasks: int = 60
    """Number of held-out tasks (unseen parameters) for choosing settings."""
    test_tasks: int = 120
    """Number of held-out tasks (unseen parameters) for reported results."""
    validation_template_tasks: int = 30
    """Number of tasks of the validation templates, which training never sees."""
    test_template_tasks: int = 60
    """Number of tasks of the test templates, which training never sees."""
    max_sessions: int = 1024
    """Most sessions (episodes) that one server keeps open at a time."""
    start_timeout_s: float = 30.0
    """Longest wait for the site server to answer after its start, seconds."""
    stop_timeout_s: float = 5.0
    """Longest wait for the site server to end before it is killed, seconds."""
    faulty_low: float = 0.2
    """Lowest share of imperfect demonstrations that a template may have."""
    faulty_high: float = 0.8
    """Highest share of imperfect demonstrations that a template may have."""
