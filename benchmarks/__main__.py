"""``python -m benchmarks [NAME…]``: all benchmarks, or those named, one after another.

Each runs in a process of its own with its default options; for others call ``python -m benchmarks.NAME``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from benchmarks.runs import child_environment

NAMES = (
    "rollout_speed",
    "browser_steps",
    "pages",
    "staleness",
    "frames",
    "determinism",
    "recorded",
    "resume",
    "kills",
    "soak",
    "chaos",
    "learning",
    "serving",
    "kept_prompts",
    "learner",
    "phase_shares",
    "fuzz",
    "analyzer",
    "critic_latency",
    "sgo",
    "orm",
    "orm_learning",
    "chain_tasks",
    "ceiling",
    "milestones",
)


def main() -> None:
    """Run the benchmarks; the exit code is 1 where one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run all benchmarks, or those named.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(NAMES)}; none runs all")
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"unknown {', '.join(unknown)}; there are {', '.join(NAMES)}")
    failed = []
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        started = time.monotonic()
        code = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], env=child_environment()).returncode
        print(f"== {name}: {'done' if code == 0 else f'exit code {code}'}, {time.monotonic() - started:.0f} s\n")
        if code:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
