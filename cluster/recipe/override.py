"""How an override of a recipe is written: ``section.key=value``, as ``--set`` takes it."""

from __future__ import annotations

import json


def override(key: str, value: object) -> str:
    """Return the override that sets ``key``, a setting's dotted name, to ``value``, which is written as JSON."""
    return f"{key}={json.dumps(value, ensure_ascii=False)}"
