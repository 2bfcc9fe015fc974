"""``python -m cluster.reference`` writes every generated page (``make docs``)."""

from __future__ import annotations

from cluster.reference import decisions, metrics, modules, plugs, settings
from cluster.run_folder.durable import write_atomic

PAGES = {
    settings.PAGE: settings.reference_page,
    plugs.PAGE: plugs.plugs_page,
    modules.PAGE: modules.module_page,
    decisions.PAGE: decisions.index,
    metrics.PAGE: metrics.metrics_page,
}
"""What writes each page."""


def main() -> None:
    """Write all of them."""
    for path, write in PAGES.items():
        write_atomic(path, write())


if __name__ == "__main__":
    main()
