"""The recipe that the documentation gives for the real WebArena."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import yaml

_PAGE = Path(__file__).parents[3] / "docs" / "environments.md"


def recipe_of_the_guide() -> dict[str, Any]:
    """Return the only recipe of the section on WebArena."""
    section = _PAGE.read_text(encoding="utf-8").split("\n## WebArena\n", 1)[1]
    (block,) = re.findall(r"^   ```yaml\n(.*?)^   ```$", section, re.M | re.S)
    raw: dict[str, Any] = yaml.safe_load(textwrap.dedent(block))
    return raw
