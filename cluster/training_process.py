"""``waymark train`` as a child process, for whoever starts several runs: studies and benchmarks.

Owns the command and where its output goes. Invariants: a run's output stands beside its folder, in ``OUT.log``, one
start after another; SIGTERM ends the child cleanly, and the same command goes on from there.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def start_training(
    recipe: Path,
    out: Path,
    overrides: Sequence[str],
    environment: Mapping[str, str],
    *,
    own_session: bool = False,
) -> subprocess.Popen[bytes]:
    """Start training in the run folder ``out``; ``overrides`` are ``KEY=VALUE``.

    With ``own_session`` a Ctrl-C reaches only who started it, who then has to end the child.
    """
    command = [sys.executable, "-m", "cluster", "train", str(recipe), "--out", str(out)]
    for override in overrides:
        command += ["--set", override]
    out.parent.mkdir(parents=True, exist_ok=True)
    with training_log(out).open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(environment),
            start_new_session=own_session,
        )


def training_log(out: Path) -> Path:
    """Return the file with the output of all starts of the run in ``out``."""
    return out.with_name(out.name + ".log")


def last_lines(out: Path, count: int) -> list[str]:
    """Return the last lines that the run in ``out`` said."""
    return training_log(out).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-count:]
