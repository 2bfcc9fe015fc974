"""The Arrow schema of a shard: how a ``Trajectory`` becomes one row and back.

Owns the column layout, its versions, and both conversions. Version 4 is written. Versions 2 and 3 are read: their steps
do not say whether their action was refused, and version 2 has no final states. Invariants: a round trip changes nothing
that a learner reads (ids, log-probabilities, masks are bit for bit the same); numpy arrays that come back are read-only
views into the file's memory. Text must be UTF-8 on disk: lone surrogates, which pages can contain, are replaced by "?"
so that an episode is never lost to one odd character. Imports only the standard library, numpy and pyarrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from records.episodes import FinalState, Source, Step, Termination, Trajectory
from records.failures import Failure, FailureCode, FailureKind
from records.texts import storable

KIND_KEY, VERSION_KEY = b"waymark.kind", b"waymark.version"
KIND = b"trajectories"
SOURCES_KEY = b"waymark.sources"
"""In a packed shard: the names of those that it was made from, as JSON."""

_STEP_FIELDS = [
    pa.field("index", pa.int32(), nullable=False),
    pa.field("url", pa.string(), nullable=False),
    pa.field("observation", pa.string(), nullable=False),
    pa.field("prompt_ids", pa.list_(pa.int32()), nullable=False),
    pa.field("action_ids", pa.list_(pa.int32()), nullable=False),
    pa.field("logprobs", pa.list_(pa.float32()), nullable=False),
    pa.field("policy_version", pa.int64(), nullable=False),
    pa.field("temperature", pa.float64(), nullable=False),
    pa.field("action_text", pa.string(), nullable=False),
    pa.field("milestones", pa.list_(pa.bool_()), nullable=False),
    pa.field("parse_error", pa.string()),
    pa.field("feedback", pa.string()),
    pa.field("element", pa.string()),
    pa.field("truncated_tokens", pa.int32(), nullable=False),
    pa.field("browser_s", pa.float64(), nullable=False),
    pa.field("policy_s", pa.float64(), nullable=False),
    pa.field("screenshot", pa.string()),
]
REFUSED = "refused"
STEP_TYPE = pa.struct([*_STEP_FIELDS, pa.field(REFUSED, pa.bool_())])

FAILURE_TYPE = pa.struct(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),
    ]
)

FINAL_STATE = "final_state"
FINAL_STATE_TYPE = pa.struct(
    [
        pa.field("url", pa.string(), nullable=False),
        pa.field("observation", pa.string(), nullable=False),
        pa.field("prompt_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("feedback", pa.string()),
        pa.field("truncated_tokens", pa.int32(), nullable=False),
    ]
)

_EPISODE_FIELDS = [
    pa.field("episode_id", pa.string(), nullable=False),
    pa.field("task_id", pa.string(), nullable=False),
    pa.field("template", pa.string(), nullable=False),
    pa.field("site", pa.string(), nullable=False),
    pa.field("split", pa.string(), nullable=False),
    pa.field("intent", pa.string(), nullable=False),
    pa.field("source", pa.string(), nullable=False),
    pa.field("phase", pa.int32(), nullable=False),
    pa.field("seed", pa.int64(), nullable=False),
    pa.field("group", pa.string(), nullable=False),
    pa.field("termination", pa.string()),
    pa.field("answer", pa.string()),
    pa.field("outcome", pa.float64()),
    pa.field("failure", FAILURE_TYPE),
    pa.field("final_milestones", pa.list_(pa.bool_()), nullable=False),
    pa.field("evidence", pa.string(), nullable=False),
    pa.field("horizon", pa.int32(), nullable=False),
    pa.field("policy_version", pa.int64(), nullable=False),
    pa.field("worker", pa.string(), nullable=False),
    pa.field("seconds", pa.float64(), nullable=False),
]


def _schema(version: bytes, step: pa.StructType, *further: pa.Field) -> pa.Schema:
    steps = pa.field("steps", pa.list_(pa.field("item", step, nullable=False)), nullable=False)
    return pa.schema([*_EPISODE_FIELDS, steps, *further], metadata={KIND_KEY: KIND, VERSION_KEY: version})


_FINAL = pa.field(FINAL_STATE, FINAL_STATE_TYPE)
SCHEMA = _schema(b"4", STEP_TYPE, _FINAL)
"""What is written."""
_EARLIER = (_schema(b"2", pa.struct(_STEP_FIELDS)), _schema(b"3", pa.struct(_STEP_FIELDS), _FINAL))
SCHEMAS = {schema.metadata[VERSION_KEY].decode(): schema for schema in (*_EARLIER, SCHEMA)}
"""What shards of each version that is read look like."""

_ARRAYS = {"prompt_ids": np.int32, "action_ids": np.int32, "logprobs": np.float32}
_STEP_SCALARS = [field.name for field in _STEP_FIELDS if field.name not in {*_ARRAYS, "milestones"}]
_CONVERTED = {"final_milestones", "failure", "source", "termination"}
_EPISODE_SCALARS = [field.name for field in _EPISODE_FIELDS if field.name not in _CONVERTED]


def to_batch(trajectory: Trajectory) -> pa.RecordBatch:
    """Return a record batch of one row.

    Raises:
        TypeError: where an array is not of the type that ``Step`` promises; nothing is cast in silence.
        ValueError: where ids and log-probabilities of a step differ in length.
    """
    row: dict[str, Any] = {name: _storable(getattr(trajectory, name)) for name in _EPISODE_SCALARS}
    failure = trajectory.failure
    row["source"] = str(trajectory.source)
    row["termination"] = None if trajectory.termination is None else str(trajectory.termination)
    row["final_milestones"] = [bool(done) for done in trajectory.final_milestones]
    row["failure"] = None
    if failure is not None:
        row["failure"] = {
            "kind": str(failure.kind),
            "code": _storable(failure.code.name),
            "detail": _storable(failure.detail),
        }
    row["steps"] = [_step_row(trajectory.episode_id, step) for step in trajectory.steps]
    if trajectory.final_state is not None:
        row[FINAL_STATE] = _final_state_row(trajectory.episode_id, trajectory.final_state)
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


def as_written_now(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a record of any version as one of ``SCHEMA``; what its version does not tell is null."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns.setdefault(FINAL_STATE, pa.nulls(batch.num_rows, FINAL_STATE_TYPE))
    steps = columns["steps"]
    if steps.type != SCHEMA.field("steps").type:
        rows = steps.values
        known = [rows.field(field.name) for field in _STEP_FIELDS]
        lifted = pa.StructArray.from_arrays([*known, pa.nulls(len(rows), pa.bool_())], fields=list(STEP_TYPE))
        columns["steps"] = pa.ListArray.from_arrays(steps.offsets, lifted, type=SCHEMA.field("steps").type)
    return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def from_batch(batch: pa.RecordBatch, *, pages: bool = True) -> Trajectory:
    """Return the trajectory of a one-row batch; its arrays are read-only views of the batch's memory.

    Without ``pages`` the observations of the steps and of the final state are empty.

    Raises:
        ValueError: what the batch holds is no trajectory.
    """
    row = {field.name: batch.column(field.name)[0].as_py() for field in _EPISODE_FIELDS}
    failure, termination = row.pop("failure"), row.pop("termination")
    return Trajectory(
        **{name: row[name] for name in _EPISODE_SCALARS},
        source=Source(row["source"]),
        termination=None if termination is None else Termination(termination),
        failure=None if failure is None else _failure(failure),
        final_milestones=tuple(row["final_milestones"]),
        steps=_steps(batch.column("steps").flatten(), pages),
        final_state=_final_state(batch.column(FINAL_STATE), pages) if FINAL_STATE in batch.schema.names else None,
    )


def _steps(rows: pa.StructArray, pages: bool) -> tuple[Step, ...]:
    read = _STEP_SCALARS if pages else [name for name in _STEP_SCALARS if name != "observation"]
    columns: dict[str, list[Any]] = {name: rows.field(name).to_pylist() for name in read}
    columns.setdefault("observation", [""] * len(rows))
    told = rows.field(REFUSED).to_pylist() if rows.type.get_field_index(REFUSED) >= 0 else [None] * len(rows)
    columns[REFUSED] = [bool(refused) for refused in told]
    columns["milestones"] = [tuple(values) for values in rows.field("milestones").to_pylist()]
    for name in _ARRAYS:
        columns[name] = _views(rows.field(name))
    steps = tuple(Step(**{name: values[i] for name, values in columns.items()}) for i in range(len(rows)))
    for step in steps:
        _require_logprobs(step, f"step {step.index}")
    return steps


def _final_state(rows: pa.StructArray, pages: bool) -> FinalState | None:
    if not rows[0].is_valid:
        return None
    plain = {name: rows.field(name)[0].as_py() for name in ("url", "feedback", "truncated_tokens")}
    (ids,) = _views(rows.field("prompt_ids"))
    return FinalState(**plain, prompt_ids=ids, observation=rows.field("observation")[0].as_py() if pages else "")


def _failure(row: dict[str, str]) -> Failure:
    return Failure(FailureCode(row["code"], FailureKind(row["kind"])), row["detail"])


def _views(lists: pa.ListArray) -> list[Any]:
    """Return one numpy view per list, without copying."""
    offsets = lists.offsets.to_numpy(zero_copy_only=True)
    values = lists.values.to_numpy(zero_copy_only=True)
    return [values[start:stop] for start, stop in zip(offsets[:-1], offsets[1:], strict=True)]


def _step_row(episode_id: str, step: Step) -> dict[str, Any]:
    row: dict[str, Any] = {name: _storable(getattr(step, name)) for name in _STEP_SCALARS}
    row["milestones"] = [bool(done) for done in step.milestones]
    row[REFUSED] = bool(step.refused)
    where = f"episode {episode_id}, step {step.index}"
    row |= {name: _array(getattr(step, name), dtype, f"{where}: {name}") for name, dtype in _ARRAYS.items()}
    _require_logprobs(step, where)
    return row


def _final_state_row(episode_id: str, state: FinalState) -> dict[str, Any]:
    row: dict[str, Any] = {name: _storable(getattr(state, name)) for name in FinalState.__slots__}
    row["prompt_ids"] = _array(state.prompt_ids, np.int32, f"episode {episode_id}, final state: prompt_ids")
    return row


def _array(array: Any, dtype: Any, where: str) -> npt.NDArray[Any]:
    """Return an array that is of the type promised, or raise ``TypeError``."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
        found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(
            f"{where} must be a one-dimensional {np.dtype(dtype)} array, found {found}; convert it where it is made"
        )
    return array


def _require_logprobs(step: Step, where: str) -> None:
    if len(step.action_ids) != len(step.logprobs):
        raise ValueError(
            f"{where}: expected one log-probability per action token, "
            f"found {len(step.action_ids)} tokens and {len(step.logprobs)} log-probabilities"
        )


def _storable(value: Any) -> Any:
    """Return a value as Arrow can store it: strings without lone surrogates, all else as it is."""
    return storable(value) if isinstance(value, str) else value
