"""The scripts that run in every document before its own.

Owns their order and how the parts become one script, which a document that has it already skips.
Invariant: the parts share one scope that pages cannot reach; ``page_script.js`` says what they offer.
"""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent
_PARTS = (
    "page_state", "page_console", "page_activity", "page_actions", "page_input", "page_targets", "page_words",
    "page_view", "page_script",
)  # fmt: skip


def _read(name: str) -> str:
    return (_FOLDER / f"{name}.js").read_text(encoding="utf-8")


PAGE_SCRIPT = f"(() => {{\nif (window.__waymark) return;\n{''.join(map(_read, _PARTS))}}})();"
"""Acts, waits and observes."""

WORKER_SCRIPT = f"(() => {{\n{_read('page_console')}}})()"
"""Mutes a worker, which documents' scripts do not reach."""

WEBRL_SCRIPT = _read("page_script_webrl")
"""What the ``webrl`` format needs beside it."""

_FRAMES = f"{_read('page_observers')}{_read('page_frames')}"
FRAMES_SCRIPT = f"(() => {{\nif (window.__waymarkFrames) return;\n{_FRAMES}}})();"
"""Stands in for frames where Chromium draws none; it runs before the page script."""
