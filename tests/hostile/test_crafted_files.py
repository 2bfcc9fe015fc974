"""Crafted files, replies and pages: refused by name, in bounded time, and never by a mistake of ours."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import BaseModel

from cluster.errors import ManifestError
from cluster.recipe.recipe import Recipe
from cluster.run_folder.manifest import RunManifest, read_header
from cluster.run_folder.starts import note_start, require_same_code, start_files
from cluster.run_folder.summary import read_summary
from environments.addresses import EpisodeAddresses
from environments.browserless.tabs import Tabs
from environments.interface import element_names
from environments.interface.element_names import MAX_NESTED
from environments.interface.grammar import parse
from environments.interface.snapshot import Node, RichView, Snapshot
from environments.interface.waymark_format import write_lines
from environments.interface.webrl_format import numbered_elements
from judges.llm.answers import NotAnAnswer, read_answer
from judges.of_milestones.checker import load_checker
from judges.of_milestones.recorded import page_of
from judges.quantities import meets, whole_number
from judges.rule_errors import RuleError
from policy.tokenizer import TextTokenizer
from records.durable import read_json
from records.episodes import FinalState
from records.labels import LabelSubject
from records.stores.folder_store import FolderStore
from records.stores.lease import KEY, RunLease
from records.stores.store import StoreError
from replay.buffer import ReplayBuffer
from replay.labels import SCHEMA as LABELS
from replay.labels import LabelStore
from replay.schema import SCHEMA, SOURCES_KEY, to_batch
from replay.shards import ShardReader, TornShardError, read_shard
from tests.replay.test_packing import episode

DEEP = "[" * 100_000
TOKENIZER = Path(__file__).parents[2] / "cluster" / "recipes" / "tiny-cloned"


def nested(depth: int, leaves: int, tag: str = "button", **attributes: Any) -> Snapshot:
    node = Node("div", {}, [Node("span", {}, [f"word{i} "]) for i in range(leaves)])
    for level in range(depth):
        node = Node(tag, dict(attributes), [f"b{level} ", node])
    return Snapshot("http://a/", "t", Node("body", {}, [node]))


@pytest.mark.parametrize(("tag", "attributes"), [("button", {}), ("a", {"href": "/"}), ("div", {"clickable": True})])
def test_controls_within_controls_are_read_a_bounded_number_of_times(
    tag: str, attributes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker stood still for 50 s at such a page, and a few hundred levels were a recursion too deep."""
    page, calls = nested(440, 500, tag, **attributes), 0
    gather = element_names._gather

    def counted(*given: Any) -> None:
        nonlocal calls
        calls += 1
        gather(*given)

    monkeypatch.setattr(element_names, "_gather", counted)
    text, elements, _ = write_lines(page, 1_000_000)
    assert 0 < len(elements) <= MAX_NESTED
    assert calls < 5 * MAX_NESTED * 1000, "nodes: 440 levels and 500 leaves"
    assert all(f"word{number} " in f"{text} ".replace("\n", " ") for number in (0, 250, 499)), "no text is lost"


def test_what_lies_deeper_than_controls_are_numbered_is_read_as_text() -> None:
    text, elements, _ = write_lines(nested(MAX_NESTED + 5, 1, "a", href="/"), 10_000)
    assert len(elements) == MAX_NESTED
    assert "word0" in text


def test_numbered_boxes_within_boxes_are_named_by_their_text_as_far_as_controls_are() -> None:
    page = nested(40, 3)
    for number, node in enumerate(page.root.walk()):
        node.attributes["mark"] = str(number)
    elements = numbered_elements(RichView(page.root, 100, 100), page.root)
    named = [element.name for element in elements if element.name.startswith("b")]
    assert len(elements) == sum(1 for _ in page.root.walk())
    assert 0 < len(named) <= MAX_NESTED


@pytest.mark.parametrize(
    "line", ["a " + "= " * 10_000 + "x", "a = 1" + " = 1" * 5_000 + " x", "select " + "( " * 9_000]
)
def test_long_lines_of_a_recorded_page_are_taken_apart_from_their_ends(line: str) -> None:
    page = page_of(FinalState("u", f"@ t\n{line}\nbutton Save 3", np.zeros(0, np.int32), None, 0))
    assert [(element.element_id, element.name) for element in page.elements] == [(3, "Save")]


def test_a_page_may_claim_an_address_that_is_none() -> None:
    addresses = EpisodeAddresses({"shop": "http://shop.test"})
    assert addresses.allows("http://shop.test/x")
    assert not addresses.allows("http://[")


def test_half_a_character_is_no_text_of_an_action() -> None:
    action = parse(r'exit(message="a\ud800b")')
    assert action.argument == "a\ufffdb"
    assert str(action.argument).encode()


@pytest.mark.parametrize("wanted", ["\u00b2", "\u0662", "9" * 5000, "-1", ""])
def test_a_tab_is_named_by_digits(wanted: str) -> None:
    tabs = Tabs(None, None, 4)  # type: ignore[arg-type]
    assert tabs.switch(wanted).code == "no_tab"


@pytest.mark.parametrize("digits", [41, 5_000, 100_000])
def test_numbers_of_a_page_or_a_task_file_have_an_end(digits: int) -> None:
    assert whole_number("1" * digits) is None
    assert whole_number("1" * 40) == int("1" * 40)
    with pytest.raises(RuleError, match="expected an inequality"):
        meets(3, "> " + "1" * digits + "x")
    assert meets(3, "> 2.5")


class Said(BaseModel):
    same: bool


@pytest.mark.parametrize("text", ['x {"a":' * 6_000, "{" * 50_000, '{"b":[1,' * 6_000])
def test_prose_of_braces_is_no_answer(text: str) -> None:
    with pytest.raises(NotAnAnswer):
        read_answer(text[:49_000], Said)
    assert read_answer('I think {of this}: {"same": true}.', Said).same


@pytest.mark.parametrize("name", ["7", "99999999999", "00000007.tmp"])
def test_what_is_no_version_of_a_record_is_none(tmp_path: Path, name: str) -> None:
    store = FolderStore(tmp_path)
    first = store.swap("lease", b"{}", None)
    (tmp_path / "lease" / name).write_text("{}")
    (tmp_path / "lease" / "00000099").symlink_to(tmp_path / "nowhere")
    found = store.record("lease")
    assert found is not None
    assert (found.content, found.version) == (b"{}", first)


@pytest.mark.parametrize("content", [DEEP, "[]", '{"epoch": "1", "holder": "", "machine": "", "process": 1}', "{}"])
def test_a_lease_that_is_none_is_told(tmp_path: Path, content: str) -> None:
    store = FolderStore(tmp_path)
    store.swap(KEY, content.encode(), None)
    with pytest.raises(StoreError, match="is no lease of a run"):
        RunLease(store).take()


@pytest.mark.parametrize("content", [DEEP, "[]", "3", "nothing", '{"format": 6}', '{"schema": 1'])
def test_files_of_a_run_that_are_not_what_they_were_are_named(tmp_path: Path, content: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(_file(tmp_path / "other.json", content if content != '{"format": 6}' else "[]"))
    _file(tmp_path / "manifest.json", content)
    _file(tmp_path / "summary.json", content)
    with pytest.raises(ManifestError, match=r"manifest\.json"):
        read_header(tmp_path)
    with pytest.raises(ManifestError, match=r"summary\.json"):
        read_summary(tmp_path)


@pytest.mark.parametrize("content", [DEEP, "[]", '{"code": []}', "{}"])
def test_a_start_that_is_not_what_it_was_is_named(tmp_path: Path, content: str) -> None:
    RunManifest.open(tmp_path, Recipe()).note_start(Recipe())
    _file(tmp_path / "starts" / "1x.json", "{}")
    assert [path.name for path in start_files(tmp_path)] == ["0001.json"]
    assert note_start(tmp_path, {}) == 2
    _file(tmp_path / "starts" / "0002.json", content)
    with pytest.raises(ManifestError, match=r"cannot read .*0002\.json"):
        require_same_code(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", "[]"), ("tokenizer_config.json", DEEP), ("config.json", '{"eos_token_id": "abc"}'),
        ("tokenizer_config.json", '{"eos_token": {"content": [1]}}'), ("config.json", '{"eos_token_id": [-1]}'),
    ],
)  # fmt: skip
def test_a_models_files_that_are_not_what_they_should_be_are_refused(tmp_path: Path, name: str, content: str) -> None:
    for file in TOKENIZER.glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    _file(tmp_path / name, content)
    with pytest.raises(ValueError, match=r"expected|nests too deep"):
        TextTokenizer.load(tmp_path)


@pytest.mark.parametrize("content", [DEEP, "[]", '{"encoder": "somebody/model"}'])
def test_a_checker_names_no_model_to_fetch(tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    if content.startswith("{"):
        content = json.dumps({
            "version": 1, "features": ["x"], "means": [], "scales": [], "weights": [], "decision_threshold": 0.5,
            "templates": [], **json.loads(content),
        })  # fmt: skip
    _file(tmp_path / "milestone_checker.json", content)
    with pytest.raises(ValueError, match="expected a checker"):
        load_checker(tmp_path)


def _file(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def shard(path: Path, rows: list[dict[str, Any]], sources: bytes | None = None) -> Path:
    """Write a shard that Arrow takes and whose name says nothing of its content."""
    metadata = {**(SCHEMA.metadata or {}), **({} if sources is None else {SOURCES_KEY: sources})}
    with pa.ipc.new_file(str(path), SCHEMA.with_metadata(metadata)) as writer:
        for row in rows:
            arrays = [pa.array([row[field.name]], type=field.type) for field in SCHEMA]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA.with_metadata(metadata)))
    return path


ROW: dict[str, Any] = to_batch(episode(1)).to_pylist()[0]
STEP: dict[str, Any] = ROW["steps"][0]


@pytest.mark.parametrize("sources", [b"5", b"{}", DEEP.encode(), b'["a/b.arrow"]', b'["../x"]', b"[1]", b"[null]"])
def test_a_shard_that_claims_odd_sources_is_left_out(tmp_path: Path, sources: bytes) -> None:
    path = shard(tmp_path / "shard.arrow", [ROW], sources)
    with ShardReader(path) as reader, pytest.raises(TornShardError):
        _ = reader.sources
    shard(tmp_path / "other.arrow", [{**ROW, "episode_id": "fine"}])
    buffer = ReplayBuffer(tmp_path)
    assert "fine" in buffer.ids()


@pytest.mark.parametrize(
    "changed",
    [
        {"episode_id": None}, {"final_milestones": None}, {"steps": None}, {"steps": [{**STEP, "action_ids": None}]},
        {"steps": [{**STEP, "milestones": None}]}, {"steps": [None]},
    ],
    ids=lambda changed: json.dumps(list(changed)),
)  # fmt: skip
def test_a_shard_with_nothing_where_something_belongs_is_left_out(tmp_path: Path, changed: dict[str, Any]) -> None:
    path = shard(tmp_path / "shard.arrow", [{**ROW, **changed}])
    shard(tmp_path / "other.arrow", [{**ROW, "episode_id": "fine"}])
    with pytest.raises(TornShardError, match=r"null|unreadable"):
        read_shard(path)
    buffer = ReplayBuffer(tmp_path)
    assert "fine" in buffer.ids()
    assert len(list(buffer.trajectories(["fine"]))) == 1


@pytest.mark.parametrize("name", ["descriptions", "decision_threshold", "judge", "values"])
def test_labels_with_nothing_where_something_belongs_are_left_out(tmp_path: Path, name: str) -> None:
    empty: dict[str, Any] = {"string": "x", "float": 0.5, "double": 0.5, "int32": 1, "int64": 1, "bool": True}
    row = {field.name: empty.get(str(field.type), []) for field in LABELS}
    row["subject"] = str(LabelSubject.OUTCOME)
    arrays = [pa.array([None if field.name == name else row[field.name]], type=field.type) for field in LABELS]
    with pa.ipc.new_file(str(tmp_path / "a.labels.arrow"), LABELS) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=LABELS))
    assert LabelStore(tmp_path).judges(LabelSubject.OUTCOME) == ()
