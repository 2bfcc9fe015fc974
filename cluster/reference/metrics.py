"""The generated table of metrics in ``docs/guides/metrics.md``, between two marks.

Owns that part of the page; the rest is written by hand.
"""

from __future__ import annotations

from pathlib import Path

from telemetry.table import table_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "metrics.md"
_BEGIN, _END = "<!-- made by `make docs` from telemetry.table -->\n", "<!-- until here -->"


def metrics_page() -> str:
    """Return the guide with the table as it is now; raise ``ValueError`` where a mark is gone."""
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name}: expected the marks {_BEGIN.strip()!r} and {_END!r} around the table")
    return f"{before}{begin}\n{table_page()}\n\n{end}{after}"
