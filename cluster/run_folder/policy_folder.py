"""The folder of the policy that a run starts from: copied from a checkpoint, and compared with its checksums.

Owns ``OUT/policy``. Invariants: the folder appears whole or not at all; a shipped checkpoint is used
only when its files are those that its ``checksums.json`` names.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path, PurePosixPath

from cluster.errors import ManifestError, MissingError
from cluster.run_folder.durable import put_folder, scratch_folder, sha256_file
from policy.hub import CHECKSUMS
from records.durable import read_text


def copy_checkpoint(source: Path, target: Path) -> None:
    """Copy a policy folder after checking it against its checksums; raise as ``require_shipped`` does."""
    require_shipped(source)
    scratch = scratch_folder(target)
    shutil.copytree(source, scratch)
    put_folder(scratch, target)


def require_shipped(source: Path) -> None:
    """Compare a checkpoint with its checksums.

    Raises:
        MissingError: it is not there, or its files are not those that were shipped.
    """
    wrong = wrong_files(source)
    if wrong == [CHECKSUMS]:
        raise MissingError(
            f"warm_start.checkpoint {source}: cannot read {CHECKSUMS}; name a folder that Waymark exported, "
            "or set warm_start.clone to always to clone a policy here"
        )
    if wrong:
        raise MissingError(
            f"warm_start.checkpoint {source}: {', '.join(wrong)} are missing or have changed; restore them "
            "(git checkout), or set warm_start.clone to always to clone a policy here"
        )


def require_unchanged(folder: Path) -> None:
    """Raise ``ManifestError`` where a run's own policy folder is not what it was when the run began."""
    wrong = wrong_files(folder)
    if wrong:
        raise ManifestError(
            f"{folder}: {', '.join(wrong)} are missing or have changed, and the run depends on them; restore them from "
            "a copy, or start again in a new --out"
        )


def write_checksums(folder: Path) -> None:
    """Write the SHA-256 of every file of a policy folder into it; its model card may change."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    digests = {name: sha256_file(folder / name) for name in names if name not in (CHECKSUMS, "README.md")}
    (folder / CHECKSUMS).write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


def wrong_files(folder: Path) -> list[str]:
    """Return the files of a policy folder that are not what its checksums say, these themselves included."""
    try:
        expected: dict[str, str] = json.loads(read_text(folder / CHECKSUMS))
    except (OSError, ValueError, RecursionError):
        return [CHECKSUMS]
    if not isinstance(expected, dict) or not expected:
        return [CHECKSUMS]
    return [name for name, digest in expected.items() if not _is(folder, name, digest)]


def _is(folder: Path, name: str, digest: str) -> bool:
    """Whether a file lies within the folder and has this SHA-256; a name that can be none has not."""
    try:
        inner = PurePosixPath(name)
        within = inner.as_posix() == name and not inner.is_absolute() and ".." not in inner.parts
        return within and (folder / name).is_file() and sha256_file(folder / name) == digest
    except (OSError, ValueError):
        return False
