"""All task templates of the encyclopedia."""

from __future__ import annotations

from sites.wiki.tasks.reading import TEMPLATES

__all__ = ["TEMPLATES"]
