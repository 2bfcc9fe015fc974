"""The published forms of offline trajectories, and which of them a source has.

Owns ``read_source`` and one reader a form. A form says what a record is and where its outcome stands:

- ``conversations``: WebRL's data for supervised training, one step a record, as LLaMA-Factory reads it: a human turn
  with the whole prompt, a turn of the model with its action. Only solved tasks are published: each outcome is 1.
- ``experiences``: what WebRL's actor learns from, as JSON: ``observation`` (the prompt), ``action`` and
  ``trajectory_reward``, steps alone or in a list for each trajectory.
- ``traces``: what VAB-WebArena-Lite writes while it plays: a folder ``traces`` (or ``fixed_traces``) with a file of
  lines for each task (``html``, ``response``, ``target``), and ``actions`` with the ``score`` of each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from offline.episodes import LooseStep, OfflineEpisode, OfflineStep, episodes_of_steps
from offline.left_out import LeftOuts, Place, Reason
from offline.records import SourceError, read_records
from offline.webrl_prompts import FormError, read_prompt
from records.durable import read_text
from records.texts import storable

TRACES, FIXED, ACTIONS = "traces", "fixed_traces", "actions"
_SOLVED = 0.5
"""From this score on a task counts as solved, as in WebRL."""
_HUMAN, _MODEL = "human", "gpt"


def read_source(source: Path, left_out: LeftOuts) -> tuple[str, list[OfflineEpisode]]:
    """Return the name of the source's form and its episodes; whatever cannot be read is counted in ``left_out``.

    Raises:
        SourceError: there is nothing to read, or nothing in one of the forms.
    """
    try:
        if source.is_dir():
            return TRACES, _traces(source, left_out)
        return _of_file(source, left_out)
    except OSError as error:
        raise SourceError(f"cannot read {source}: {error.strerror or error}") from error


def _of_file(file: Path, left_out: LeftOuts) -> tuple[str, list[OfflineEpisode]]:
    episodes: list[OfflineEpisode] = []
    loose: list[LooseStep] = []
    forms: dict[str, None] = {}
    seen: set[tuple[str, ...]] = set()
    for place, record in read_records(file, file.name, left_out):
        try:
            form, found = _read(place, record)
        except FormError as error:
            left_out.add(Reason.DAMAGED, place, str(error))
            continue
        forms[form] = None
        if isinstance(found, OfflineEpisode):
            episodes.append(found)
        elif found.said in seen:
            left_out.add(Reason.DUPLICATE, place, found.instruction)
        else:
            seen.add(found.said)
            loose.append(found)
    if not forms:
        examples = [example.found for entry in left_out.by_reason.values() for example in entry.examples[:1]]
        raise SourceError(f"{file} holds nothing in a form that is known: {'; '.join(examples) or 'it is empty'}")
    return " and ".join(forms), [*episodes_of_steps(loose), *episodes]


def _read(place: Place, record: object) -> tuple[str, LooseStep | OfflineEpisode]:
    if isinstance(record, list):
        return "experiences", _experiences(place, record)
    if isinstance(record, dict) and "conversations" in record:
        return "conversations", _conversation(place, record)
    if isinstance(record, dict) and "observation" in record:
        return "experiences", _experience(place, record)
    shown = sorted(map(str, record))[:6] if isinstance(record, dict) else type(record).__name__
    raise FormError(f"expected a record with conversations, or with observation and action; found {shown}")


def _conversation(place: Place, record: Mapping[str, object]) -> LooseStep:
    turns = record["conversations"]
    if not isinstance(turns, list) or len(turns) != 2:
        found = f"{len(turns)} turns" if isinstance(turns, list) else type(turns).__name__
        raise FormError(f"expected one turn of a human and one of the model, found {found}")
    said = {}
    for turn, who in zip(turns, (_HUMAN, _MODEL), strict=True):
        if not isinstance(turn, dict) or turn.get("from") != who:
            raise FormError(f"expected the turns to be from {_HUMAN} and {_MODEL}, in this order")
        said[who] = _text(turn, "value")
    return _loose(place, said[_HUMAN], said[_MODEL], 1.0)


def _experience(place: Place, record: Mapping[str, object]) -> LooseStep:
    return _loose(place, _text(record, "observation"), _text(record, "action"), _outcome(record, "trajectory_reward"))


def _experiences(place: Place, record: Sequence[object]) -> OfflineEpisode:
    steps = []
    for one in record:
        if not isinstance(one, dict):
            raise FormError(f"expected a list of steps, found one with a {type(one).__name__}")
        steps.append(_experience(place, one))
    if len({(step.instruction, step.outcome) for step in steps}) != 1:
        raise FormError(f"expected steps of one task with one reward, found {len(steps)} steps of several or none")
    return OfflineEpisode(steps[0].instruction, "", tuple(one.step for one in steps), steps[0].outcome)


def _loose(place: Place, prompt: str, response: str, outcome: float | None) -> LooseStep:
    read = read_prompt(prompt)
    return LooseStep(read.instruction, outcome, OfflineStep(place, read.past, read.page, response.strip()))


def _traces(folder: Path, left_out: LeftOuts) -> list[OfflineEpisode]:
    lines = next((path for name in (FIXED, TRACES) if (path := folder / name).is_dir()), None)
    if lines is None:
        raise SourceError(f"{folder}: expected a folder {TRACES} in it, with {ACTIONS} beside; or name a file")
    files = sorted(path for path in lines.iterdir() if path.suffix == ".jsonl")
    if not files:
        raise SourceError(f"{lines} has no .jsonl files")
    episodes = []
    for file in files:
        name = f"{lines.name}/{file.name}"
        rows = list(read_records(file, name, left_out))
        try:
            episodes.append(_trace(file.stem, rows, _score_of(folder, file.stem)))
        except FormError as error:
            left_out.add(Reason.DAMAGED, Place(name, 0), str(error), max(1, len(rows)))
    return episodes


def _trace(task_id: str, rows: Sequence[tuple[Place, object]], score: float | None) -> OfflineEpisode:
    """Return one task's trace; a row of it that cannot be used breaks all of it, for later prompts tell of it."""
    steps: list[OfflineStep] = []
    said: list[str] = []
    instruction = ""
    for place, row in rows:
        if not isinstance(row, dict):
            raise FormError(f"record {place.record}: expected a step, found a {type(row).__name__}")
        instruction = _text(row, "target").strip()
        response = _text(row, "fixed_response" if "fixed_response" in row else "response").strip()
        steps.append(OfflineStep(place, tuple(said), _text(row, "html").strip(), response))
        said.append(response)
        score = score if score is not None else _outcome(row, "score")
    if not instruction:
        raise FormError("expected steps towards a target, found none")
    return OfflineEpisode(instruction, task_id, tuple(steps), score)


def _score_of(folder: Path, task_id: str) -> float | None:
    """Return what the evaluator said of a task; None where it said nothing."""
    try:
        content = json.loads(read_text(folder / ACTIONS / f"{task_id}.json", "replace"))
    except (OSError, ValueError, RecursionError):
        return None
    return _outcome(content, "score") if isinstance(content, dict) else None


def _outcome(record: Mapping[str, object], key: str) -> float | None:
    """Return 0 or 1; None for what is no score (a task that was not finished has a negative one)."""
    score = record.get(key)
    if not isinstance(score, int | float) or not 0 <= score <= 1:
        return None
    return 1.0 if score >= _SOLVED else 0.0


def _text(record: Mapping[str, object], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise FormError(f"expected a text {key}, found {type(value).__name__}")
    return storable(value)
