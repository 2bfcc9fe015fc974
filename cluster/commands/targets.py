"""Options that name what a command writes, looked at before the command does anything.

Owns ``json_option``, ``file_option``, ``new_folder_option`` and ``require_folder``. Invariant: what cannot be written
there is said before the work whose result it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from cluster.errors import RecipeError
from cluster.run_folder.durable import require_new


def json_option(what: str) -> Any:
    """Return the option ``--json`` of a command that also writes ``what`` to a file."""
    return file_option("--json", f"Also write {what} to this file.")


def file_option(name: str, help_text: str) -> Any:
    """Return an option that names a file to write, or to replace."""
    return typer.Option(name, help=help_text, callback=_file)


def new_folder_option(help_text: str) -> Any:
    """Return the option ``--out`` of a command that makes a folder, which must not be there yet."""
    return typer.Option("--out", help=help_text, callback=_new_folder)


def require_folder(option: str, path: Path) -> None:
    """Refuse what cannot be a folder, there or to be made: a file, or something below one."""
    _require_below_a_folder(option, path, (path.absolute(), *path.absolute().parents))


def _file(param: typer.CallbackParam, value: Path | None) -> Path | None:
    if value is not None:
        if os.path.isdir(value):
            raise RecipeError(f"{param.opts[0]}: expected a file to write, found a folder: {value}; name a file in it")
        _require_place(param.opts[0], value)
    return value


def _new_folder(param: typer.CallbackParam, value: Path | None) -> Path | None:
    if value is not None:
        require_new(value, param.opts[0])
        _require_place(param.opts[0], value)
    return value


def _require_place(option: str, path: Path) -> None:
    """Refuse a path below a file or a folder that cannot be written to, and one that no file can have."""
    place = _require_below_a_folder(option, path, path.absolute().parents)
    if not os.access(place, os.W_OK | os.X_OK):
        raise RecipeError(f"{option} {path}: {place} cannot be written to; name another place, or make it writable")


def _require_below_a_folder(option: str, path: Path, places: Sequence[Path]) -> Path:
    """Return the first of ``places`` that is there, a folder; refuse another one, and a path that no file can have."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise RecipeError(f"{option} {str(path):.80}: {(error.strerror or '').lower()}; name another place") from error
    place = next(place for place in places if os.path.lexists(place))
    if not place.is_dir():
        raise RecipeError(f"{option} {path}: {place} is no folder; name another place")
    return place
