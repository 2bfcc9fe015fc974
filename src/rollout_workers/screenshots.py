"""Pictures of pages on disk, named by episode and step.

Owns the layout ``<folder>/<episode>/<step>.png``. Invariant: a file under its final name is complete.
"""

from __future__ import annotations

import os
import re
from pathlib import Path


class ScreenshotFolder:
    """Stores PNGs; safe to call from several threads."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def save(self, episode_id: str, index: int, png: bytes) -> str:
        """Store the page before step ``index`` and return its path relative to the folder."""
        name = f"{re.sub(r'[^A-Za-z0-9._-]', '_', episode_id)}/{index:02d}.png"
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        unfinished.write_bytes(png)
        os.replace(unfinished, path)
        return name
