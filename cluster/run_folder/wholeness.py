"""Whether what a complete run leaves is whole: the files that its stages recorded, its policy, its report.

Owns the look that a start takes at a run that has nothing left to do. Invariants: what was recorded is judged as by a
start that goes on (``cluster.run_folder.rollback``); nothing is changed but the names of files that cannot be read and
that no stage depends on. Imports neither torch nor Ray.
"""

from __future__ import annotations

import os
from pathlib import Path

from cluster.run_folder.layout import REPORT, RunFolders
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.policy_folder import require_unchanged, wrong_files
from cluster.run_folder.rollback import read_rollbacks, set_unusable_aside, standing
from records.durable import NotAFile, open_file
from replay.buffer import ReplayBuffer
from replay.labels import LabelStore

_END = b"</html>"
_TAIL = 64


def not_whole(manifest: RunManifest) -> list[str]:
    """Return what of a complete run must be made again, one phrase each; nothing where all is whole.

    The summary is none of it: it follows from the manifests (``cluster.run_folder.summary.renew_summary``).

    Raises:
        ManifestError: the policy that the run began with, or a record of a rollback, is damaged: no start can mend it.
    """
    folders = RunFolders(manifest.out)
    begun = [found.number for found in read_rollbacks(manifest.out) if not found.done]
    unfinished = [f"rollback {number:04d} is not finished" for number in begun]
    buffer, labels = ReplayBuffer(folders.episodes), LabelStore(folders.labels)
    if wrong := [*unfinished, *standing(manifest, buffer.shards)[1]]:
        return wrong
    set_unusable_aside((*buffer.scan.skipped, *labels.skipped))
    if not folders.policy.exists():
        return [f"{folders.policy.name} is gone"]
    require_unchanged(folders.policy)
    page = [] if _is_whole_page(manifest.out / REPORT) else [f"{REPORT} is gone or damaged"]
    return [*_wrong_of_trained(folders.trained), *page]


def _wrong_of_trained(folder: Path) -> list[str]:
    if not folder.is_dir():
        return [f"{folder.name} is gone"]
    return [f"{folder.name}/{name} is gone or damaged" for name in wrong_files(folder)]


def _is_whole_page(path: Path) -> bool:
    """Whether a page is there to its end."""
    try:
        with open_file(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read().rstrip().endswith(_END)
    except (FileNotFoundError, NotAFile):
        return False
