"""WebArena's task files: from JSON to ``Task`` records.

Owns ``load_tasks`` and the typed views of what only an environment needs. Invariants: ``Task.raw`` equals the
JSON object it came from; addresses stay placeholders; a malformed file is an error that names file, task, key,
what was expected and what was found. Ids do not collide between the files: ``webarena.27`` and
``webarena_lite.27`` are the same task of WebArena in two wordings, and their templates have one name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from environments.webarena.sites.addresses import SITES, placeholders
from environments.webarena.tasks.bounds import MAX_BYTES, MAX_DEPTH, check_depth
from environments.webarena.tasks.format import Geolocation, TaskEntry, Viewport
from judges.rules import WEBARENA, WEBARENA_LITE, RuleSet
from records.durable import NotAFile, read_text
from records.episodes import Task

_SHOWN = 100


class TaskFileError(ValueError):
    """A task file is not what it should be."""


def load_tasks(path: Path | str, *, split: str = "", names: tuple[str, ...] = SITES) -> list[Task]:
    """Load a task file of WebArena (812 tasks), WebArena-Lite (165) or its training tasks (647), as tasks of ``split``.

    They may be on the sites called ``names``.

    Raises:
        TaskFileError: for a file that cannot be read, a malformed task, or an id that occurs twice.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        text = read_text(path) if size <= MAX_BYTES else ""
        entries = json.loads(text, parse_constant=_no_number) if text else None
    except NotAFile as error:
        raise TaskFileError(f"{error}; correct the path") from error
    except OSError as error:
        raise TaskFileError(f"{path}: expected a task file, found none: {error.strerror}; correct the path") from error
    except ValueError as error:
        raise TaskFileError(f"{path}: expected JSON, found something else: {str(error)[:_SHOWN]}") from error
    except RecursionError as error:
        raise TaskFileError(f"{path}: expected lists and objects nested at most {MAX_DEPTH} deep") from error
    if size > MAX_BYTES:
        raise TaskFileError(f"{path}: expected at most {MAX_BYTES} bytes, found {size}; split the file")
    if not isinstance(entries, list) or not entries:
        raise TaskFileError(f"{path}: expected a non-empty list of tasks, found {_cut(entries)}")
    tasks: dict[str, Task] = {}
    for index, entry in enumerate(entries):
        task = _task(entry, f"{path}: task {index}", split, names)
        if task.task_id in tasks:
            raise TaskFileError(f"{path}: task {index}: expected an id of its own, found {task.task_id} again")
        tasks[task.task_id] = task
    return list(tasks.values())


def rules_of(task: Task) -> RuleSet:
    """Return the rules for which the task's references were written: the overlay's for WebArena-Lite."""
    return WEBARENA_LITE if task.raw.get("old_task_id") is not None else WEBARENA


def geolocation(task: Task) -> Geolocation | None:
    """Return where the browser is to say it is, None for nowhere."""
    found = task.raw.get("geolocation")
    return None if found is None else Geolocation.model_validate(found)


def viewport(task: Task) -> Viewport | None:
    """Return the page area that the task asks for, None for the environment's own."""
    found = task.raw.get("viewport_size")
    return None if found is None else Viewport.model_validate(found)


def needed_sites(task: Task, names: Sequence[str] = SITES) -> tuple[str, ...]:
    """Return the sites that the task names and those whose placeholders it holds, each once."""
    named = placeholders(json.dumps([task.start_url, task.evaluation]), names)
    return tuple(dict.fromkeys([*task.sites, *named]))


def _task(entry: object, where: str, split: str, names: tuple[str, ...]) -> Task:
    if not isinstance(entry, Mapping):
        raise TaskFileError(f"{where}: expected an object, found {_cut(entry)}")
    try:
        check_depth(entry)
    except ValueError as error:
        raise TaskFileError(f"{where}: expected {error}; correct the file") from error
    try:
        typed = TaskEntry.model_validate(entry, context=names)
    except ValidationError as error:
        raise TaskFileError(f"{where}: {_first(error)}") from error
    family, number = ("webarena", typed.task_id)
    if typed.old_task_id is not None:
        family, number = ("webarena_lite", typed.old_task_id)
    raw: dict[str, Any] = dict(entry)
    return Task(
        task_id=f"{family}.{number}",
        sites=tuple(typed.sites),
        intent=typed.intent,
        start_url=typed.start_url,
        evaluation=raw["eval"],
        template=f"webarena.{typed.intent_template_id}",
        parameters=raw["instantiation_dict"],
        require_login=typed.require_login,
        require_reset=typed.require_reset,
        split=split,
        raw=raw,
    )


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _first(error: ValidationError) -> str:
    """Say of the first fault where it is, what was expected and what was found."""
    found = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in found["loc"])
    expected = found["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    if found["type"] == "missing":
        return f"{key}: expected a value, found no such key; correct the file"
    return f"{key}: expected {expected}, found {_cut(found['input'])}; correct the file"


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
