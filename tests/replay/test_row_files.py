"""Small files of rows: what is written comes back, and what no version writes is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from replay.first_states import SCHEMA, SUFFIX, FirstState, first_states_in, read_first_states, write_first_states
from replay.row_files import read_rows, write_rows
from replay.shards import TornShardError, write_named

NAMED = pa.schema(
    [pa.field("name", pa.string(), nullable=False), pa.field("parts", pa.list_(pa.string()), nullable=False)]
)
HALF = "half a character: \ud83d"


def test_first_states_come_back_as_they_were_written(tmp_path: Path) -> None:
    states = [FirstState("a", np.array([3, 1, 2], np.int32)), FirstState("b", np.array([], np.int32))]
    found = read_first_states(write_first_states(tmp_path, states))
    assert [state.task_id for state in found] == ["a", "b"]
    assert [state.prompt_ids.tolist() for state in found] == [[3, 1, 2], []]


def test_texts_are_stored_as_utf_8_can_hold_them_however_deep_they_lie(tmp_path: Path) -> None:
    path = write_rows(tmp_path, "some", ".rows", NAMED, [{"name": HALF, "parts": ["whole", HALF]}])
    said = HALF.replace("\ud83d", "?")
    assert read_rows(path, NAMED, "names") == [{"name": said, "parts": ["whole", said]}]


@pytest.mark.parametrize("row", [{"task_id": None, "prompt_ids": [1]}, {"task_id": "a", "prompt_ids": None}])
def test_a_null_where_the_schema_has_none_is_damage(tmp_path: Path, row: dict[str, object]) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, SCHEMA) as writer:
        writer.write_batch(pa.record_batch([pa.array([row[f.name]], f.type) for f in SCHEMA], schema=SCHEMA))
    path, _ = write_named(tmp_path, "first", SUFFIX, bytes(sink.getvalue()))
    with pytest.raises(TornShardError, match="is null"):
        read_first_states(path)
    assert first_states_in(tmp_path) == {}


def test_rows_of_something_else_are_refused_with_what_they_are(tmp_path: Path) -> None:
    path = write_rows(tmp_path, "some", SUFFIX, NAMED, [{"name": "a", "parts": []}])
    with pytest.raises(TornShardError, match=r"no file of first states that this version writes \(\['name', 'parts'\]"):
        read_first_states(path)
