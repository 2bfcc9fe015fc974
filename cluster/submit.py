"""A run handed to a Ray cluster: its job submitted, its log followed, its exit code returned.

Owns ``submit``. Invariants: a recipe that cannot be read is refused before anything is sent; the job goes on when the
one who follows it leaves; a cluster that does not answer is given up after a limit, and that is said. Sent are the
recipe, the modules of one's own that it names and, unless the cluster's image has Waymark, its sources as they are.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
import site
import sys
import sysconfig
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TextIO

from cluster.errors import MissingError, RecipeError, RunError, RunInterrupted
from cluster.recipe.recipe import Recipe, load_recipe
from cluster.run_folder.resume import Resume
from records.stores.address import check_uri, is_uri
from records.stores.store import StoreError

if TYPE_CHECKING:
    from ray.job_submission import JobSubmissionClient

_ROOT = Path(__file__).resolve().parents[1]
_LOOK_S = 5.0
"""Fixed: how often a job is looked at while its log says nothing."""
_AWAY_S = 300.0
"""Fixed: a dashboard that does not answer for so long is given up; the job is not."""
_STARTING_S = 120.0
"""Fixed: the part of a head that starts jobs comes up after its dashboard."""
_NO_AGENT = "No available agent"
_RECIPE = "recipe.yaml"
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info")


@dataclass(frozen=True, slots=True)
class Sent:
    """What is sent with a job beside the recipe: ``modules`` of one's own that it names, files or folders.

    Waymark's own sources are sent too, unless it is ``installed`` in the cluster's image.
    """

    modules: Sequence[Path] = ()
    installed: bool = False


def submit(
    recipe: Path,
    address: str,
    out: str,
    overrides: Sequence[str],
    *,
    sent: Sent,
    resume: Resume = Resume.AUTO,
    follow: bool = True,
) -> int:
    """Submit a run to the cluster whose dashboard is at ``address``, and return its exit code (0 without ``follow``).

    Args:
        recipe: the recipe's file here.
        address: such as ``http://127.0.0.1:8265``; Ray's own settings say how to authenticate.
        out: the run folder, absolute, on storage that every node sees at this path; or a run's address in a store.
        overrides: as ``--set`` takes them.
        sent: what the job's folder holds beside the recipe.
        resume: as ``waymark train`` takes it.
        follow: print the job's log until it ends.

    Raises:
        RecipeError: the recipe is wrong, ``out`` is relative, or a module that the recipe names would not be sent.
        MissingError: nobody answers there, or refuses.
        RunError: the job ended without an exit code, or its cluster went away.
        RunInterrupted: the job was stopped.
    """
    loaded = load_recipe(recipe, overrides)
    _require_sent(loaded, sent.modules)
    name = loaded.run.name
    if is_uri(out):
        _require_address(out)
    elif not PurePosixPath(out).is_absolute():
        raise RecipeError(f"--out: expected an absolute path that every node of the cluster sees, found {out!r}")
    client = _client(address)
    job = f"waymark-{name}-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "job"
        _lay_out(folder, recipe, sent)
        asked = ["--resume", resume.value, *_sets(overrides)]
        entrypoint = shlex.join(["python", "-m", "cluster", "train", _RECIPE, "--out", out, *asked])
        path = "." if sent.installed else "src:."
        environment = {"working_dir": str(folder), "env_vars": {"PYTHONPATH": path}}
        _send(client, address, entrypoint, job, environment)
    sys.stderr.write(f"Job {job}. Its log: ray job logs --follow {job}. To stop it: ray job stop {job}\n")
    if not follow:
        return 0
    try:
        asyncio.run(_follow(client, job, sys.stdout))
    except KeyboardInterrupt as error:
        raise RunInterrupted(f"no longer followed; job {job} goes on: ray job logs --follow {job}") from error
    return _exit_code(client, job)


def _client(address: str) -> JobSubmissionClient:
    from ray.exceptions import AuthenticationError
    from ray.job_submission import JobSubmissionClient

    os.environ["RAY_API_SERVER_ADDRESS"] = address  # Ray's client asks the environment first, whatever it is told
    try:
        return JobSubmissionClient(address)
    except (ConnectionError, RuntimeError, ValueError, AuthenticationError) as error:
        advice = "give --address the dashboard's address, and a cluster's token as RAY_AUTH_MODE=token RAY_AUTH_TOKEN=…"
        raise MissingError(f"{address} is no Ray dashboard that can be asked: {error}; {advice}") from error


def _send(client: JobSubmissionClient, address: str, entrypoint: str, job: str, environment: dict[str, Any]) -> None:
    """Submit the job; a cluster that has just started takes none for some seconds."""
    ends = time.monotonic() + _STARTING_S
    while True:
        try:
            client.submit_job(entrypoint=entrypoint, submission_id=job, runtime_env=environment)
            return
        except (RuntimeError, ConnectionError, ValueError) as error:
            if _NO_AGENT not in str(error) or time.monotonic() > ends:
                raise MissingError(f"{address} does not take the job: {error}") from error
        time.sleep(_LOOK_S)


def _require_address(out: str) -> None:
    try:
        check_uri(out)
    except StoreError as error:
        raise RecipeError(f"--out: {error}") from error


def _require_sent(recipe: Recipe, modules: Sequence[Path]) -> None:
    """Refuse a plug of one's own whose module lies where neither Waymark nor an installed package is."""
    there = {module.stem if module.is_file() else module.name for module in modules}
    for name in recipe.plugs:
        module = name.partition(":")[0].partition(".")[0]
        place = None if module in there else _place_of(module)
        if place is not None and not _is_installed(place):
            raise RecipeError(
                f"{name}: its module is {place}, which is not sent; add --with {place}, or install it, here and in the "
                "cluster's image"
            )


def _place_of(module: str) -> Path | None:
    """Return the file of a module, or the folder of a package; None where Python finds none."""
    spec = find_spec(module)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin) if spec.origin else None


def _is_installed(place: Path) -> bool:
    """Whether a module is of Waymark's sources or of an installed package."""
    packages = [Path(one) for one in (*site.getsitepackages(), sysconfig.get_paths()["stdlib"])]
    return any(place.is_relative_to(one) for one in (_ROOT / "src", _ROOT / "cluster", *packages))


def _lay_out(folder: Path, recipe: Path, sent: Sent) -> None:
    """Put together what is sent."""
    folder.mkdir()
    shutil.copyfile(recipe, folder / _RECIPE)
    for module in sent.modules:
        if module.name in (_RECIPE, "src", "cluster") or (folder / module.name).exists():
            raise RecipeError(f"--with {module}: something else of that name is sent; rename it")
        if module.is_dir():
            shutil.copytree(module, folder / module.name, ignore=_LEFT_OUT)
        elif module.is_file():
            shutil.copyfile(module, folder / module.name)
        else:
            raise RecipeError(f"--with {module}: there is no such file or folder")
    if sent.installed:
        return
    if not (_ROOT / "src").is_dir():
        raise RecipeError("Waymark runs from an installed package here, so its sources cannot be sent: use --installed")
    for part in ("src", "cluster"):
        shutil.copytree(_ROOT / part, folder / part, ignore=_LEFT_OUT)


def _sets(overrides: Sequence[str]) -> list[str]:
    return [word for override in overrides for word in ("--set", override)]


async def _follow(client: JobSubmissionClient, job: str, to: TextIO) -> None:
    """Write the job's log to ``to`` until the job has ended; a connection that breaks is made again."""
    shown, answered = 0, time.monotonic()
    while True:
        seen = 0
        try:
            async for lines in _while_running(client, job, client.tail_job_logs(job)):
                answered, before, seen = time.monotonic(), seen, seen + len(lines)
                to.write(lines[max(0, shown - before) :])
                to.flush()
                shown = max(shown, seen)
            if await _ended(client, job):  # whoever follows a log misses what is written just before the end
                log = await asyncio.wait_for(asyncio.to_thread(client.get_job_logs, job), _AWAY_S)
                to.write(log[shown:])
                to.flush()
                return
            answered = time.monotonic()
        except (OSError, RuntimeError) as error:
            if time.monotonic() - answered > _AWAY_S:
                raise RunError(
                    f"the cluster has not answered for {_AWAY_S:g} s ({error}); job {job} may go on"
                ) from error
        await asyncio.sleep(1.0)


async def _while_running(client: JobSubmissionClient, job: str, log: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield what the log says; end with it, or when the job has ended and says no more."""
    while True:
        following = asyncio.ensure_future(anext(log, None))
        try:
            while not (await asyncio.wait({following}, timeout=_LOOK_S))[0]:
                if await _ended(client, job):
                    return
        finally:
            if not following.done():
                following.cancel()
        lines = await following
        if lines is None:
            return
        yield lines


async def _ended(client: JobSubmissionClient, job: str) -> bool:
    status = await asyncio.wait_for(asyncio.to_thread(client.get_job_status, job), _AWAY_S)
    return status.is_terminal()


def _exit_code(client: JobSubmissionClient, job: str) -> int:
    """Return the exit code of an ended job."""
    info = client.get_job_info(job)
    if info.status == "STOPPED":
        raise RunInterrupted(f"job {job} was stopped; the same command goes on with its run folder")
    if info.driver_exit_code is None:
        raise RunError(f"job {job} {str(info.status).lower()} before its command began: {info.message}")
    return int(info.driver_exit_code)
