"""What is raised where a task's evaluation cannot be read, and the readers of its two kinds of text."""

from __future__ import annotations


class RuleError(ValueError):
    """A task file asks for something that no rule knows, or in a form that cannot be read."""


def text(value: object) -> str:
    """Return a string; raise ``RuleError`` for anything else."""
    if not isinstance(value, str):
        raise RuleError(f"expected a string, found {value!r}; correct the task file")
    return value


def texts(value: object) -> list[str]:
    """Return a list of strings; a lone string, which some task files hold, is a list of one."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise RuleError(f"expected a non-empty list of strings, found {value!r}; correct the task file")
    return [text(item) for item in value]
