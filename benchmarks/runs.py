"""Training runs as child processes.

Owns the call of the command line. Invariant: a run that is complete in its folder is not run again, and one that was
interrupted goes on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cluster import training_process
from cluster.recorded_run import RecordedRun
from cluster.run_folder.layout import RESULT

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("runs") / "benchmarks"
LAPTOP = ROOT / "cluster" / "recipes" / "laptop.yaml"


class RunFailed(RuntimeError):
    """A training run did not end well; the text names its log."""


def child_environment(**more: str) -> dict[str, str]:
    """Return an environment in which a child Python finds the packages and uses one thread."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **more}


def start_training(
    recipe: Path, out: Path, overrides: Sequence[str] = (), **environment: str
) -> subprocess.Popen[bytes]:
    """Start ``waymark train``; its output goes to ``OUT.log``."""
    return training_process.start_training(recipe, out, overrides, child_environment(**environment))


def train(recipe: Path, out: Path, overrides: Sequence[str] = ()) -> RecordedRun:
    """Train, or finish, or only read the run in ``out``.

    Raises:
        RunFailed: the command line ended with an error.
    """
    process = start_training(recipe, out, overrides)
    try:
        code = process.wait()
    except BaseException:
        process.terminate()  # it stops cleanly and can be resumed
        process.wait()
        raise
    check(code, out)
    return RecordedRun(out)


def evaluate(
    recipe: Path, policy: Path, split: str, out: Path, overrides: Sequence[str] = (), steps_factor: int = 1
) -> Path:
    """Evaluate a policy folder on a split, keep its episodes in ``out``, and return the file of its result.

    What was evaluated into ``out`` is not evaluated again. Its output goes to ``OUT.log``.

    Raises:
        RunFailed: the command line ended with an error.
    """
    result, log = out / RESULT, Path(f"{out}.log")
    if result.exists():
        return result
    command = [sys.executable, "-m", "cluster", "eval", str(recipe), "--policy", str(policy), "--split", split]
    command += ["--steps-factor", str(steps_factor), "--out", str(out)]
    command += [word for override in overrides for word in ("--set", override)]
    out.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        code = subprocess.run(command, stdout=file, stderr=file, env=child_environment()).returncode
    if code:
        raise RunFailed(f"{out}: the evaluation ended with exit code {code}; see {log}")
    return result


def check(code: int, out: Path) -> None:
    """Raise ``RunFailed`` with the end of the log where the exit code is not 0."""
    if code:
        said = " / ".join(training_process.last_lines(out, 3))
        raise RunFailed(f"{out}: exit code {code}; see {training_process.training_log(out)}: {said}")
