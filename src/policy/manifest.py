"""What names one published set of weights: its version, its checksum and where it lies.

Owns ``WeightManifest`` and its file, which a restarted server reads to come back with the current
weights. Imports no torch.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from records.durable import replace_file


class WeightsRejected(ValueError):
    """Weights that are not what their manifest says, or not this model's; nothing was loaded."""


@dataclass(frozen=True, slots=True)
class WeightManifest:
    """``checksum`` is the SHA-256 of the safetensors file at ``path``, in hexadecimal."""

    version: int
    checksum: str
    path: str


def write_manifest(manifest: WeightManifest, path: str | Path) -> None:
    """Write ``manifest`` to the file ``path``, which is replaced whole or not at all."""
    replace_file(Path(path), (json.dumps(asdict(manifest), indent=2) + "\n").encode())


def read_manifest(path: str | Path) -> WeightManifest:
    """Read a manifest; raise ``WeightsRejected`` where the file is not one."""
    try:
        manifest = WeightManifest(**json.loads(Path(path).read_text(encoding="utf-8")))
    except (TypeError, ValueError, RecursionError) as error:
        raise WeightsRejected(f"{path} is not a weight manifest: {error}") from error
    kinds = tuple(type(value) for value in (manifest.version, manifest.checksum, manifest.path))
    if kinds != (int, str, str) or "\0" in manifest.path:
        raise WeightsRejected(f"{path} is not a weight manifest: expected a number and two texts, found {manifest}")
    return manifest
