"""Group commit: finished trajectories become durable together, and only then are they acknowledged.

Owns the way from a finished episode to its shard, and into the run's store where it has one. Invariants: ``add``
returns after the shard that holds the trajectory is durable, never before; what cannot be written is an infrastructure
failure of each episode concerned; two attempts at one episode never share a shard; writing happens in a thread, so
that no other episode waits for the disk; a folder that is not the driver's is not made and not written to.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from records import failure_codes as codes
from records.episodes import Trajectory
from records.failures import EpisodeFailed, Failure
from records.folder_mark import FolderNotShared, require_mark
from records.stores.working_copy import is_address, keep, local_path
from replay.shards import ShardInfo, write_shard

logger = logging.getLogger(__name__)


def require_run_folder(mark: str) -> None:
    """Raise ``EpisodeFailed`` (``infra/run_folder_not_shared``) where this process does not see the run folder."""
    try:
        require_mark(mark)
    except FolderNotShared as error:
        raise EpisodeFailed(Failure(codes.RUN_FOLDER_NOT_SHARED, str(error))) from error


class ShardWriter:
    """Writes the trajectories that finish within ``linger_s`` seconds of each other into one shard.

    ``directory`` is a folder, or the address of one of a run in a store. Nothing is written where the ``mark`` of the
    run folder is not seen.
    """

    def __init__(self, directory: str | Path, *, linger_s: float, deadline_s: float, mark: str = "") -> None:
        self._address = directory
        self._directory = local_path(directory)
        self._linger_s = linger_s
        self._deadline_s = deadline_s
        self._mark = mark
        self._open: list[Trajectory] = []
        self._commit: asyncio.Task[ShardInfo] | None = None

    async def add(self, trajectory: Trajectory) -> str:
        """Return the path of the durable shard that holds ``trajectory``; raise ``EpisodeFailed`` if none does."""
        # An attempt that the driver has given up may end beside the one that replaced it.
        twice = any(other.episode_id == trajectory.episode_id for other in self._open)
        if self._commit is None or twice:
            self._open = []
            self._commit = asyncio.create_task(self._write_after_linger(self._open))
        self._open.append(trajectory)
        # Shielded: others wait for the same commit, so one episode's cancellation must not end it.
        info = await asyncio.shield(self._commit)
        return str(info.path)

    async def _write_after_linger(self, group: list[Trajectory]) -> ShardInfo:
        await asyncio.sleep(self._linger_s)
        if self._open is group:
            self._commit = None  # from here on newcomers form the next group
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._write, group), self._deadline_s)
        except (OSError, TimeoutError) as error:
            detail = f"{len(group)} episodes not written to {self._directory}: {error or type(error).__name__}"
            logger.error("shard not written: %s", detail)
            raise EpisodeFailed(Failure(codes.SHARD_NOT_WRITTEN, detail)) from error

    def _write(self, group: list[Trajectory]) -> ShardInfo:
        require_run_folder(self._mark)
        info = write_shard(self._directory, group)
        if is_address(self._address):
            keep(f"{self._address}/{info.path.name}")
        return info
