"""Checkpoints of the learner: safetensors for numbers, JSON for the rest, nothing pickled.

Owns the layout of a checkpoint directory: ``<name>.safetensors`` per module, ``<name>.optimiser.safetensors``
per optimiser, ``state.json``, ``manifest.json`` with a SHA-256 of each, and ``COMPLETE``, written last, which
holds the manifest's SHA-256. A directory appears whole or not at all, and loading restores every bit.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from learner.errors import CheckpointError
from records.durable import force_to_disk

COMPLETE = "COMPLETE"
MANIFEST = "manifest.json"
STATE = "state.json"


def own_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return the module's parameters and stored buffers by name, tied ones once, under their first name."""
    seen: set[tuple[int, torch.Size]] = set()
    tensors: dict[str, Tensor] = {}
    for name, tensor in module.state_dict().items():
        key = (tensor.data_ptr(), tensor.shape)
        if key not in seen:
            seen.add(key)
            tensors[name] = tensor
    return tensors


def write_checkpoint(
    path: str | Path,
    modules: Mapping[str, nn.Module],
    optimisers: Mapping[str, torch.optim.Optimizer],
    state: Mapping[str, Any],
) -> Path:
    """Write a checkpoint to ``path`` and return it.

    What is there already is replaced, once the new one is complete: a stage that was stopped between its
    checkpoint and its acknowledgement runs again and writes the same checkpoint again.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    replaced = scratch.with_name(scratch.name + ".replaced")
    try:
        for name, module in modules.items():
            _save(own_tensors(module), scratch / f"{name}.safetensors")
        groups = {}
        for name, optimiser in optimisers.items():
            tensors, groups[name] = _flatten(optimiser)
            _save(tensors, scratch / f"{name}.optimiser.safetensors")
        body = json.dumps({"state": dict(state), "optimisers": groups}, indent=1, sort_keys=True)
        (scratch / STATE).write_text(body, encoding="utf-8")
        digests = {file.name: _sha256(file) for file in sorted(scratch.iterdir())}
        (scratch / MANIFEST).write_text(json.dumps(digests, indent=1), encoding="utf-8")
        _sync(scratch)
        (scratch / COMPLETE).write_text(_sha256(scratch / MANIFEST), encoding="utf-8")
        _sync(scratch)
        scratch.chmod(0o755)
        if target.exists():
            os.rename(target, replaced)
        os.rename(scratch, target)
        force_to_disk(target.parent)
        shutil.rmtree(replaced, ignore_errors=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def read_checkpoint(
    path: str | Path, modules: Mapping[str, nn.Module], optimisers: Mapping[str, torch.optim.Optimizer]
) -> dict[str, Any]:
    """Load a checkpoint into ``modules`` and ``optimisers`` and return its state; nothing changes if it is bad.

    Raises:
        CheckpointError: absent, incomplete, damaged, or made for other modules; the message says which.
    """
    source = Path(path)
    _verify(source)
    content = json.loads((source / STATE).read_text(encoding="utf-8"))
    loaded = {name: _matching(source / f"{name}.safetensors", own_tensors(module)) for name, module in modules.items()}
    restored = {}
    for name, optimiser in optimisers.items():
        if name not in content["optimisers"]:
            raise CheckpointError(f"{source}: no optimiser {name!r}; it was written by another algorithm")
        tensors = load_file(source / f"{name}.optimiser.safetensors")
        restored[name] = _unflatten(tensors, content["optimisers"][name], optimiser, source)
    with torch.no_grad():
        for name, module in modules.items():
            for key, tensor in own_tensors(module).items():
                tensor.copy_(loaded[name][key])
    for name, optimiser in optimisers.items():
        optimiser.load_state_dict(restored[name])
    state: dict[str, Any] = content["state"]
    return state


def _verify(source: Path) -> None:
    if not (source / COMPLETE).is_file():
        raise CheckpointError(f"{source}: no {COMPLETE} marker; the checkpoint is absent or was interrupted")
    expected = (source / COMPLETE).read_text(encoding="utf-8").strip()
    if _sha256(source / MANIFEST) != expected:
        raise CheckpointError(f"{source}: {MANIFEST} does not match {COMPLETE}; the checkpoint is damaged")
    for name, digest in json.loads((source / MANIFEST).read_text(encoding="utf-8")).items():
        if not (source / name).is_file() or _sha256(source / name) != digest:
            raise CheckpointError(f"{source}: {name} is missing or does not match its SHA-256; delete the checkpoint")


def _matching(file: Path, wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Load ``file`` and check that it holds exactly the wanted names and shapes."""
    if not file.is_file():
        raise CheckpointError(f"{file} is missing; the checkpoint was written by another algorithm")
    found = load_file(file)
    if {k: tuple(v.shape) for k, v in found.items()} != {k: tuple(v.shape) for k, v in wanted.items()}:
        raise CheckpointError(f"{file}: names or shapes differ from the model's; it was made for another model")
    return found


def _flatten(optimiser: torch.optim.Optimizer) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """Return the optimiser's tensors as ``<parameter>.<name>`` and its groups as JSON."""
    content = optimiser.state_dict()
    tensors = {f"{i}.{name}": value for i, entry in content["state"].items() for name, value in entry.items()}
    return tensors, content["param_groups"]


def _unflatten(
    tensors: Mapping[str, Tensor], groups: list[dict[str, Any]], optimiser: torch.optim.Optimizer, source: Path
) -> dict[str, Any]:
    present = [len(group["params"]) for group in optimiser.state_dict()["param_groups"]]
    if [len(group["params"]) for group in groups] != present:
        raise CheckpointError(f"{source}: the optimiser has other parameters than the model's; it was made for another")
    entries: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        entries.setdefault(int(index), {})[name] = tensor
    return {"state": entries, "param_groups": groups}


def _save(tensors: Mapping[str, Tensor], file: Path) -> None:
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, file)


def _sync(directory: Path) -> None:
    """Flush every file of ``directory``, and the directory, to disk."""
    for entry in [*directory.iterdir(), directory]:
        force_to_disk(entry)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
