"""Resetting by a program of the user's own.

Owns ``CommandReset``. Invariants: no shell is involved; past the deadline nothing that the program started runs on;
it does not see the sites' accounts.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from typing import IO

from environments.webarena.reset.protocol import reset_failed
from environments.webarena.sites.addresses import SITES, variable

_SHOWN_BYTES = 400
_GRACE_S = 2.0
"""Fixed: the kernel ends a killed program at once, or not at all."""


class CommandReset:
    """Runs a program that ends with 0 when the sites are ready; it finds the name in ``WAYMARK_DEPLOYMENT``."""

    def __init__(self, command: tuple[str, ...], timeout_s: float, names: tuple[str, ...] = SITES) -> None:
        self._command, self._timeout_s, self._names = command, timeout_s, names

    async def reset(self, deployment: str) -> None:
        """Run the program; past the deadline it and all that it started is ended."""
        # A file and not a pipe: what runs on in the background would keep a pipe open, and its end be waited for.
        with tempfile.TemporaryFile() as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=asyncio.subprocess.STDOUT,
                    env={**_without_accounts(self._names), "WAYMARK_DEPLOYMENT": deployment},
                    start_new_session=True,
                )
            except OSError as error:
                raise reset_failed(f"{self._command[0]} cannot be started: {error}") from error
            try:
                async with asyncio.timeout(self._timeout_s):
                    status = await process.wait()
            except TimeoutError as error:
                limit = f"not done within {self._timeout_s:g} s"
                raise reset_failed(f"{self._command[0]}: {limit}; {_last_words(output)}") from error
            finally:
                await _end(process)
            if status:
                raise reset_failed(f"{self._command[0]} ended with {status}; {_last_words(output)}")


def _without_accounts(names: tuple[str, ...]) -> dict[str, str]:
    """Return the environment without the sites' accounts: a program's last words are quoted in failures."""
    hidden = {f"{variable(site)}_{part}" for site in names for part in ("USERNAME", "PASSWORD")}
    return {name: value for name, value in os.environ.items() if name not in hidden}


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a program that still runs, with its process group, which it leads."""
    if process.returncode is not None:
        return
    os.killpg(process.pid, signal.SIGKILL)
    async with asyncio.timeout(_GRACE_S):
        await process.wait()


def _last_words(output: IO[bytes]) -> str:
    output.seek(max(0, output.seek(0, os.SEEK_END) - _SHOWN_BYTES))
    text = " ".join(output.read().decode("utf-8", "replace").split())
    return f"its last output: {text}" if text else "it wrote nothing"
