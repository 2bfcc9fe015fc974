"""Checkpoints of the learner: safetensors for numbers, JSON for the rest, nothing pickled.

Owns the layout of a checkpoint directory: the files of each module and of each optimiser, one a rank
(``learner.pieces``), ``state.json``, ``manifest.json`` with a SHA-256 of each, and ``COMPLETE``, written last, which
holds the manifest's SHA-256. A directory appears whole or not at all, and loading restores every bit, into any number
of ranks. Each file is hashed as it is written, by the rank that writes it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from learner.errors import CheckpointError
from learner.pieces import StoredPart, write_part
from learner.ranks import ALONE, Ranks
from policy.weights import own_tensors
from records.durable import replace_file, replace_folder

COMPLETE = "COMPLETE"
MANIFEST = "manifest.json"
STATE = "state.json"
_EXPECTED = (OSError, SafetensorError, CheckpointError)
Optimisers = Mapping[str, torch.optim.Optimizer]


def write_checkpoint(
    path: str | Path,
    modules: Mapping[str, nn.Module],
    optimisers: Optimisers,
    state: Mapping[str, Any],
    ranks: Ranks = ALONE,
    *,
    dtype: torch.dtype | None = None,
) -> Path:
    """Write a checkpoint to ``path`` and return it; every rank calls this, and ``state`` is rank 0's.

    With a ``dtype`` modules are rounded to it in the files; whoever reads them gets their own type again.

    What is there already is replaced, once the new one is complete, and stays where the disk refuses that: a stage
    that was stopped between its checkpoint and its acknowledgement runs again and writes the same checkpoint again.
    """
    target = Path(path)
    scratch = Path(ranks.all_gather_text(ranks.together(lambda: _scratch(target) if ranks.first else "", _EXPECTED))[0])
    try:
        own = ranks.together(lambda: _write_own(scratch, modules, optimisers, ranks, dtype), _EXPECTED)
        digests = {
            name: digest for text in ranks.all_gather_text(json.dumps(own)) for name, digest in json.loads(text).items()
        }
        groups = {name: optimiser.state_dict()["param_groups"] for name, optimiser in optimisers.items()}
        content = {"state": dict(state), "optimisers": groups}
        ranks.together(lambda: _complete(scratch, target, content, digests) if ranks.first else None, _EXPECTED)
    finally:
        if ranks.first:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


def read_checkpoint(
    path: str | Path,
    modules: Mapping[str, nn.Module],
    optimisers: Optimisers,
    ranks: Ranks = ALONE,
    *,
    backbone: str = "",
) -> dict[str, Any]:
    """Load a checkpoint into ``modules`` and ``optimisers`` and return its state; nothing changes if it is bad.

    Everything is verified and compared first, and then read piece by piece. ``backbone`` names what the modules are
    adapters on, as the checkpoint's state names it; empty for whole models.

    Raises:
        CheckpointError: absent, incomplete, damaged, or made for other modules; the message says which.
    """
    source = Path(path)
    names = ranks.together(lambda: _verified(source, ranks), _EXPECTED)
    content = json.loads((source / STATE).read_text(encoding="utf-8"))
    found = content["state"].get("backbone", "")
    if found != backbone:
        expected, other = (name[:12] or "none: whole models" for name in (backbone, found))
        raise CheckpointError(
            f"{source}: made for adapters on the backbone {other}, here it is {expected}; go on with the same "
            "policy.model and learner.adapters"
        )
    stored = {name: _of_module(source, name, names, module) for name, module in modules.items()}
    groups: dict[str, list[dict[str, Any]]] = content["optimisers"]
    moments = {
        name: _of_optimiser(source, name, names, optimiser, groups.get(name)) for name, optimiser in optimisers.items()
    }
    with torch.no_grad():  # a part's files are let go before the next one's are read: they are mapped into memory
        for name, module in modules.items():
            _fill(module, stored.pop(name))
        for name, optimiser in optimisers.items():
            _restore(optimiser, moments.pop(name), groups[name])
    state: dict[str, Any] = content["state"]
    return state


def read_state(path: str | Path) -> dict[str, Any]:
    """Return a checkpoint's state alone, without a look at its tensors.

    Raises:
        CheckpointError: it is absent or cannot be read.
    """
    try:
        state: dict[str, Any] = json.loads((Path(path) / STATE).read_text(encoding="utf-8"))["state"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: {STATE} cannot be read: {error}") from error
    return state


def checkpoint_id(path: str | Path) -> str:
    """Return what names a checkpoint by its content: the SHA-256 of its manifest."""
    return (Path(path) / COMPLETE).read_text(encoding="utf-8").strip()


def _scratch(target: Path) -> str:
    """Make the hidden folder that becomes ``target``, and return its path."""
    target.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent)


def _write_own(
    scratch: Path,
    modules: Mapping[str, nn.Module],
    optimisers: Optimisers,
    ranks: Ranks,
    dtype: torch.dtype | None,
) -> dict[str, str]:
    """Write this rank's files and return each one's SHA-256."""
    digests: dict[str, str] = {}
    for name, module in modules.items():
        tensors = own_tensors(module)
        digests |= write_part(scratch, name, {key: t.to(dtype or t.dtype) for key, t in tensors.items()}, ranks)
    for name, optimiser in optimisers.items():
        digests |= write_part(scratch, f"{name}.optimiser", _moments(optimiser), ranks)
    return digests


def _complete(scratch: Path, target: Path, content: Mapping[str, Any], digests: Mapping[str, str]) -> None:
    """Write the files that rank 0 writes, and give the folder its name."""
    body = json.dumps(content, indent=1, sort_keys=True).encode()
    listed = dict(sorted({**digests, STATE: hashlib.sha256(body).hexdigest()}.items()))
    manifest = json.dumps(listed, indent=1).encode()
    replace_file(scratch / STATE, body)
    replace_file(scratch / MANIFEST, manifest)
    replace_file(scratch / COMPLETE, hashlib.sha256(manifest).hexdigest().encode())
    scratch.chmod(0o755)
    replace_folder(scratch, target)


def _verified(source: Path, ranks: Ranks) -> list[str]:
    """Return the names of the checkpoint's files; this rank hashes its share of them."""
    if not (source / COMPLETE).is_file():
        raise CheckpointError(f"{source}: no {COMPLETE} marker; the checkpoint is absent or was interrupted")
    if _sha256(source / MANIFEST) != checkpoint_id(source):
        raise CheckpointError(f"{source}: {MANIFEST} does not match {COMPLETE}; the checkpoint is damaged")
    digests: dict[str, str] = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
    for name, counts in ranks.shard(sorted(digests)):
        if counts and (not (source / name).is_file() or _sha256(source / name) != digests[name]):
            raise CheckpointError(f"{source}: {name} is missing or does not match its SHA-256; delete the checkpoint")
    return list(digests)


def _of_module(source: Path, name: str, names: list[str], module: nn.Module) -> StoredPart:
    """Return what is stored of a module, once it is known to hold exactly the module's names and shapes."""
    stored = StoredPart(source, name, names)
    if stored.shapes != {key: tuple(tensor.shape) for key, tensor in own_tensors(module).items()}:
        raise CheckpointError(f"{source}: {name}: names or shapes differ from the model's; it was made for another")
    return stored


def _fill(module: nn.Module, stored: StoredPart) -> None:
    for key, tensor in own_tensors(module).items():
        stored.read_into(key, tensor)


def _of_optimiser(
    source: Path,
    name: str,
    names: list[str],
    optimiser: torch.optim.Optimizer,
    groups: list[dict[str, Any]] | None,
) -> StoredPart:
    """Return what is stored of an optimiser, once it is known to be of the same parameters."""
    if groups is None:
        raise CheckpointError(f"{source}: no optimiser {name!r}; it was written by another algorithm")
    stored, parameters = StoredPart(source, f"{name}.optimiser", names), _parameters(optimiser)
    shapes = {key: tuple(parameters[int(key.partition(".")[0])].shape) for key in stored.shapes}
    present = [len(group["params"]) for group in optimiser.param_groups]
    if [len(group["params"]) for group in groups] != present or any(
        shape not in ((), shapes[key]) for key, shape in stored.shapes.items()
    ):
        raise CheckpointError(f"{source}: the optimiser has other parameters than the model's; it was made for another")
    return stored


def _parameters(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimiser.param_groups for parameter in group["params"]]


def _moments(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimiser's tensors as ``<parameter>.<name>``."""
    return {
        f"{index}.{name}": value
        for index, parameter in enumerate(_parameters(optimiser))
        for name, value in optimiser.state.get(parameter, {}).items()
    }


def _restore(optimiser: torch.optim.Optimizer, stored: StoredPart, groups: list[dict[str, Any]]) -> None:
    """Give the optimiser what is stored, one tensor after the other."""
    parameters = _parameters(optimiser)
    optimiser.state.clear()
    for key, shape in stored.shapes.items():
        index, name = key.split(".", 1)
        parameter = parameters[int(index)]
        # A count is kept where its parameter is, as fused AdamW wants it (``learner.optimiser``).
        like = torch.empty_like(parameter) if shape else torch.empty((), dtype=torch.float32, device=parameter.device)
        stored.read_into(key, like)
        optimiser.state[parameter][name] = like
    for group, saved in zip(optimiser.param_groups, groups, strict=True):
        group.update({name: value for name, value in saved.items() if name != "params"})


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
