"""The model that ``policy.model`` names, taken as it is: what a run notes of it, and the run's own copy.

Owns the record in the run's manifest and the copy in ``OUT/policy``. Invariants: a run plays and learns from its copy
alone; it goes on only while the named folder holds the very files that it began with; a model of the hub is the commit
that it began with. Imports no torch.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cluster.errors import ManifestError, MissingError
from cluster.run_folder.durable import put_folder, scratch_folder, sha256_file
from cluster.run_folder.policy_folder import write_checksums
from policy.chat_marks import write_chat_marks
from policy.chat_template import ChatTemplateError, chat_marks_of
from policy.hub import ModelUnavailable, located_model, model_files, names_folder
from policy.settings import TINY, PolicySettings

_COMMIT = "commit"


def model_record(settings: PolicySettings) -> dict[str, str]:
    """Return what a run depends on: each file of the named folder with its SHA-256, or the hub's commit.

    Raises:
        MissingError: the hub does not give the model.
    """
    if settings.model == TINY:
        return {}
    folder, commit = _located(settings)
    return {_COMMIT: commit} if commit else {file.name: sha256_file(file) for file in _files(folder)}


def require_same_model(settings: PolicySettings, record: Mapping[str, str]) -> None:
    """Raise ``ManifestError`` where the named folder holds other files than those that the run began with."""
    if settings.model == TINY or not names_folder(settings.model):
        return
    now = model_record(settings)
    for name in record.keys() - now.keys():  # a run of an older Waymark began with files that no model consists of
        file = Path(settings.model) / name
        if file.is_file():
            now[name] = sha256_file(file)
    require_unchanged(f"policy.model {settings.model}", now, record)


def require_unchanged(named: str, now: Mapping[str, str], record: Mapping[str, str]) -> None:
    """Raise ``ManifestError`` where what a recipe has ``named`` consists of other files than ``record`` says."""
    differing = sorted(name for name in {*record, *now} if record.get(name) != now.get(name))
    if differing:
        raise ManifestError(
            f"{named} has changed since the run began: {', '.join(differing)}; put back what it was to go on with that "
            "run, or choose another --out for a new one"
        )


def copy_model(settings: PolicySettings, record: Mapping[str, str], target: Path) -> None:
    """Copy the model of ``record`` to the folder ``target``, which appears whole; raise as ``model_record`` does."""
    scratch = scratch_folder(target)
    lay_out_model(replace(settings, revision=record.get(_COMMIT, settings.revision)), scratch, shutil.copyfile)
    write_checksums(scratch)
    put_folder(scratch, target)


def lay_out_model(settings: PolicySettings, folder: Path, place: Callable[[Path, Path], Any]) -> None:
    """Make ``folder`` with the named model's files, each put there by ``place`` (source, target).

    For prompts that are a dialogue, the marks of its turns are written beside them.

    Raises:
        MissingError: the hub does not give the model, or its chat template makes no dialogue.
    """
    source, _ = _located(settings)
    folder.mkdir(parents=True)
    for file in _files(source):
        place(file.resolve(), folder / file.name)
    if settings.dialogue:
        try:
            write_chat_marks(chat_marks_of(folder, thinking=settings.thinking), folder)
        except ChatTemplateError as error:
            raise MissingError(f"policy.model {settings.model}: {error}") from error


def _files(folder: Path) -> list[Path]:
    try:
        return model_files(folder)
    except ModelUnavailable as error:
        raise MissingError(str(error)) from error


def _located(settings: PolicySettings) -> tuple[Path, str]:
    try:
        return located_model(settings)
    except ModelUnavailable as error:
        raise MissingError(str(error)) from error
