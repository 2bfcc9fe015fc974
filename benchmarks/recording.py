"""How a benchmark is called and what it leaves: a table on the screen, raw numbers in ``results/NAME.json``.

Owns the common options, the facts about the machine and the layout of a result file. Invariants: a
result names its commit, its command and the load of the machine when it started; no address of a
machine and no path outside the working folder is written on purpose.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shlex
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cluster.preflight.machine import Machine
from cluster.run_folder.durable import write_atomic
from cluster.run_folder.versions import versions
from records.json_numbers import finite

RESULTS = Path(__file__).resolve().parent / "results"
SCHEMA = 1
_LOG_WIDTH = 160


def option_parser(name: str, description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the result file")
    return parser


@dataclass
class Recording:
    """One benchmark's result; make it before the work starts, so that it notes the load without it."""

    name: str
    folder: Path = RESULTS
    machine: dict[str, Any] = field(default_factory=lambda: machine_facts())
    started: float = field(default_factory=time.monotonic)
    console: Console = field(default_factory=lambda: _console())

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table; the first column is text, the others numbers."""
        table = Table(title=Text(title), title_justify="left")
        for index, column in enumerate(columns):
            table.add_column(Text(column), justify="right" if index else "left")
        for row in rows:
            table.add_row(*(Text(shown(cell)) for cell in row))
        self.console.print(table)

    def note(self, text: str) -> None:
        """Print a sentence."""
        self.console.print(Text(text))

    def write(self, numbers: dict[str, Any]) -> Path:
        """Print the ``verdicts`` among the numbers, write ``NAME.json`` and say where it is.

        Numbers that JSON cannot hold become null.
        """
        for verdict in numbers.get("verdicts", ()):
            self.note(verdict)
        found = versions()
        content = {
            "schema": SCHEMA,
            "name": self.name,
            "command": command(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self.started, 1),
            "commit": found.pop("commit"),
            "versions": found,
            "machine": self.machine,
            "numbers": finite(numbers),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.name}.json"
        write_atomic(path, _short_lists(json.dumps(content, indent=1, allow_nan=False)) + "\n")
        self.note(f"Numbers: {path}")
        return path


def machine_facts() -> dict[str, Any]:
    """Return cores, memory, processor and the load over the last minute."""
    here = Machine.here()
    return {
        "cores": here.cores,
        "memory_mb": here.memory_mb,
        "gpus": here.gpus,
        "processor": _processor(),
        "platform": platform.platform(),
        "load_before": round(os.getloadavg()[0], 2),
    }


_PLACES = {"--oracle", "--out", "--results"}


def command() -> str:
    """Return how this process was called, as one would type it; where its files went is left out."""
    name = Path(sys.argv[0]).stem
    module = "benchmarks" if name == "__main__" else f"benchmarks.{name}"
    given = sys.argv[1:]
    said = [word for before, word in zip(["", *given], given, strict=False) if not {before, word} & _PLACES]
    return shlex.join(["python", "-m", module, *said])


def shown(value: object) -> str:
    """Return a cell's text: three significant digits for numbers, a dash for what does not exist."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def percent(value: float | None) -> str:
    """Return a share in percent with one decimal."""
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.1f}"


def met(holds: bool) -> str:
    """Return the word that ends a verdict."""
    return "met" if holds else "missed"


def points(found: Mapping[str, float]) -> str:
    """Return a difference of shares with its interval (``value``, ``low``, ``high``) in percent points."""
    value, low, high = (100 * found[name] for name in ("value", "low", "high"))
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}] points"


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=_LOG_WIDTH)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _short_lists(text: str) -> str:
    """Put lists of plain numbers on one line each."""
    return re.sub(r'\[\s+([^\[\]{}"]*?)\s+\]', lambda found: "[" + " ".join(found[1].split()) + "]", text)
