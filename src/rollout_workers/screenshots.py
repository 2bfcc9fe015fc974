"""Pictures of pages on disk, named by episode and step.

Owns the layout ``<folder>/<episode>/<step>.png``. Invariant: a file under its final name is complete, also where two
attempts at one episode write it at once.
"""

from __future__ import annotations

from pathlib import Path

from records.durable import replace_file
from records.texts import file_name


class ScreenshotFolder:
    """Stores PNGs; safe to call from several threads."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def save(self, episode_id: str, index: int, png: bytes) -> str:
        """Store the page before step ``index`` and return its path relative to the folder."""
        name = f"{file_name(episode_id)}/{index:02d}.png"
        replace_file(self._folder / name, png)
        return name
