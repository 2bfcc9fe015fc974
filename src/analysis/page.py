"""How the pages of Waymark are made: the templates' engine and how numbers are written.

Owns ``page_environment``. Invariant: everything that is put into a template is escaped by the engine.
"""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from analysis.results import GroupResult, SplitResult


def page_environment() -> Environment:
    """Return the engine with the filters of the pages."""
    environment = Environment(
        loader=PackageLoader("analysis"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = _percent
    environment.filters["interval"] = _interval
    return environment


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{100 * rate:.1f} %"


def _interval(rate: GroupResult | SplitResult) -> str:
    return "" if rate.success is None else f"{100 * rate.low:.0f}–{100 * rate.high:.0f}"
