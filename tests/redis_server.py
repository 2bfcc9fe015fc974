"""A real redis-server on loopback for tests; they skip where none is installed."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def redis_server(folder: Path, *options: str) -> Iterator[int]:
    """Run one in ``folder``, which keeps nothing on the disk unless ``options`` say so; yield its port."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server: `apt-get install redis-server`")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        ends = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < ends, "redis-server does not listen"
                time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait(30)
