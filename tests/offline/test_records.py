"""Files of others: damaged ones cost what is damaged, and never more than that; by generated damage."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offline import records
from offline.forms import read_source
from offline.left_out import LeftOuts, Reason
from offline.records import SourceError, read_records
from tests.offline.made_sources import conversations

RECORDS = [*conversations(), *conversations("Another task")]
ARRAY, LINES = json.dumps(RECORDS).encode(), "".join(json.dumps(r) + "\n" for r in RECORDS).encode()


def read(file: Path) -> tuple[list[object], LeftOuts]:
    left_out = LeftOuts()
    return [record for _, record in read_records(file, file.name, left_out)], left_out


@pytest.mark.parametrize("content", [b" \n " + ARRAY, ARRAY.replace(b", {", b"\n,\n{")])
def test_an_array_is_read_record_by_record(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    found, left_out = read(tmp_path / "a.json")
    assert (found, left_out.by_reason) == (RECORDS, {})


def test_lines_are_read_also_where_some_are_empty_and_the_last_has_no_end(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(LINES.replace(b"\n", b"\r\n\n").rstrip())
    assert read(tmp_path / "a.json")[0] == RECORDS


def test_a_file_that_ends_early_gives_what_is_before_the_end(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(ARRAY[: ARRAY.index(b"Another task")])
    found, left_out = read(tmp_path / "a.json")
    assert found == RECORDS[:3]
    (example,) = left_out.by_reason[Reason.DAMAGED].examples
    assert (example.record, "no JSON from here" in example.found) == (4, True)


def test_a_damaged_line_costs_that_line(tmp_path: Path) -> None:
    lines = LINES.splitlines()
    lines[1], lines[3] = b'{"conversations": ', b"[" * 200_000
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    found, left_out = read(tmp_path / "a.jsonl")
    assert found == [record for i, record in enumerate(RECORDS) if i not in (1, 3)]
    assert [example.record for example in left_out.by_reason[Reason.DAMAGED].examples] == [2, 4]


def test_what_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "LARGEST_RECORD_BYTES", 5000)
    large = {"conversations": "x" * 20_000}
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(r) for r in [RECORDS[0], large, RECORDS[1]]))
    (tmp_path / "a.json").write_text(json.dumps([RECORDS[0], large, RECORDS[1]]))
    for name in ("a.json", "a.jsonl"):
        found, left_out = read(tmp_path / name)
        assert found == RECORDS[:2]
        assert left_out.by_reason[Reason.DAMAGED].examples[0].record == 2
    monkeypatch.setattr(records, "LARGEST_FILE_BYTES", 100)
    with pytest.raises(SourceError, match="the limit is 100"):
        read(tmp_path / "a.json")


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(SourceError, match="found a pipe"):
        read(tmp_path / "pipe.json")


@given(st.data())
def test_damage_anywhere_costs_records_and_raises_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Bytes are changed, cut out or put in; whatever is read then is a record, whatever is not is counted."""
    whole = data.draw(st.sampled_from([ARRAY, LINES]))
    at = data.draw(st.integers(0, len(whole)))
    cut, put = data.draw(st.integers(0, 40)), data.draw(st.binary(max_size=12))
    file = tmp_path_factory.mktemp("damaged") / ("a.json" if whole is ARRAY else "a.jsonl")
    file.write_bytes(whole[:at] + put + whole[at + cut :])
    left_out = LeftOuts()
    try:
        _, episodes = read_source(file, left_out)
    except SourceError:
        assert left_out.by_reason or not file.read_bytes().strip()
        return
    for episode in episodes:
        assert episode.instruction
        assert all(isinstance(text, str) for text in episode.said)
        "".join(episode.said).encode()


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["conversations", "from", "value", "observation", "action", "target"]), inner)
    ),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=6))
def test_any_json_is_either_an_episode_or_counted(tmp_path_factory: pytest.TempPathFactory, content: list[Any]) -> None:
    file = tmp_path_factory.mktemp("any") / "a.json"
    file.write_text(json.dumps([*conversations(), *content]))
    left_out = LeftOuts()
    _, episodes = read_source(file, left_out)
    counted = sum(entry.steps for entry in left_out.by_reason.values())
    assert sum(len(episode.steps) for episode in episodes) + counted == 3 + len(content)
