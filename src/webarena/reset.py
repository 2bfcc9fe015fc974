"""Putting a deployment's sites back to their first state.

Owns the ``Resetter`` protocol, the choice of one, and the reset by a command. Invariants: a reset ends within
its deadline, well or as ``EpisodeFailed(infra/reset_failed)`` with what was seen; no shell is involved. The
reset server is in ``reset_http``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping
from typing import IO, Protocol

from replay.records import EpisodeFailed, Failure, FailureKind
from webarena.addresses import SITES, variable
from webarena.settings import DeploymentSettings, ResetSettings

_SHOWN_BYTES = 400
_GRACE_S = 2.0
"""Fixed: the kernel ends a killed program at once, or not at all."""


class Resetter(Protocol):
    """Resets one deployment."""

    async def reset(self, deployment: str) -> None:
        """Return when the sites are in their first state and answer again.

        Raises:
            EpisodeFailed: ``infra/reset_failed``.
        """
        ...


class ResetUnavailable(ValueError):
    """The configured way of resetting is not there; the message says what to use instead."""


class CommandReset:
    """Runs a program that ends with 0 when the sites are ready; it finds the name in ``WAYMARK_DEPLOYMENT``."""

    def __init__(self, command: tuple[str, ...], timeout_s: float) -> None:
        self._command, self._timeout_s = command, timeout_s

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
                    env={**_without_accounts(), "WAYMARK_DEPLOYMENT": deployment},
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


def resetters(deployments: tuple[DeploymentSettings, ...]) -> Mapping[str, Resetter]:
    """Return a resetter for each deployment that has one.

    Raises:
        ResetUnavailable: for a kind that needs something that is not there.
    """
    made = {deployment.name: make_resetter(deployment.reset) for deployment in deployments}
    return {name: resetter for name, resetter in made.items() if resetter is not None}


def make_resetter(settings: ResetSettings) -> Resetter | None:
    """Return the resetter that ``settings`` ask for, None where there is to be none; see ``resetters``."""
    from webarena.reset_http import HttpReset

    if settings.kind == "http":
        return HttpReset(
            settings.url,
            timeout_s=settings.timeout_s,
            poll_s=settings.poll_s,
            status_timeout_s=settings.status_timeout_s,
        )
    if settings.kind == "command":
        return CommandReset(settings.command, settings.timeout_s)
    if settings.kind == "kubernetes":
        return _kubernetes(settings)
    return None


def _kubernetes(settings: ResetSettings) -> Resetter:
    from rollout_workers.environment_hosts import load
    from webarena.reset_kubernetes import KubernetesReset

    if not settings.pods:
        raise ResetUnavailable(
            "reset.kind kubernetes: Waymark does not deploy the sites to Kubernetes yet, so it cannot restart their "
            "pods by itself; name a function that makes a webarena.reset_kubernetes.Pods in reset.pods (module:name), "
            "or use kind command with a script that calls `kubectl rollout restart` and `kubectl rollout status`"
        )
    try:
        make = load(settings.pods)
    except ValueError as error:
        raise ResetUnavailable(f"reset.pods: {error}") from error
    if not callable(make):
        raise ResetUnavailable(f"reset.pods: expected a function that makes a Pods, found a {type(make).__name__}")
    return KubernetesReset(make(), timeout_s=settings.timeout_s, poll_s=settings.poll_s)


def reset_failed(detail: str) -> EpisodeFailed:
    """Return the failure of a reset."""
    return EpisodeFailed(Failure(FailureKind.INFRA, "reset_failed", detail))


def _without_accounts() -> dict[str, str]:
    """Return the environment without the sites' accounts: a program's last words are quoted in failures."""
    hidden = {f"{variable(site)}_{part}" for site in SITES for part in ("USERNAME", "PASSWORD")}
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
