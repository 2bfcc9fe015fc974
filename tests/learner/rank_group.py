"""Real processes that form a group of ranks over gloo, for tests."""

from __future__ import annotations

import faulthandler
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import torch
import torch.distributed as dist

LIMIT_S = 180


def start_ranks(size: int, work: Callable[..., None], folder: Path, *given: Path | str) -> list[subprocess.Popen[str]]:
    """Start ``work(*given)`` as ``size`` ranks; what is given arrives as texts, and what is found is left in files."""
    store = folder / f"ranks-{uuid4().hex}"
    command = [sys.executable, "-m", "tests.learner.rank_group", str(size), str(store), work.__module__, work.__name__]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            [*command, *map(str, given)], env={**environment, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True
        )
        for rank in range(size)
    ]


def on_ranks(size: int, work: Callable[..., None], folder: Path, *given: Path | str) -> None:
    """Run ``work(*given)`` as ``size`` ranks until all have ended; an error of any fails the test."""
    processes = start_ranks(size, work, folder, *given)
    ends = time.monotonic() + LIMIT_S
    try:
        said = [process.communicate(timeout=max(1.0, ends - time.monotonic()))[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    wrong = [text for process, text in zip(processes, said, strict=True) if process.returncode]
    assert not wrong, "\n".join(wrong)


def main(size: str, store: str, module: str, name: str, *given: str) -> None:
    """Be one rank."""
    faulthandler.dump_traceback_later(LIMIT_S - 20, exit=True)
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=int(os.environ["RANK"]),
        world_size=int(size),
        timeout=timedelta(seconds=LIMIT_S),
    )
    getattr(importlib.import_module(module), name)(*given)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
