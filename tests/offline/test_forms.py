"""Each published form is read as what it says, in whatever order its steps lie."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from offline.episodes import OfflineEpisode
from offline.forms import read_source
from offline.left_out import LeftOuts, Reason
from offline.records import SourceError
from offline.webrl_prompts import FormError, read_prompt
from tests.offline.made_sources import (
    ANSWERS,
    FAILED,
    HUMAN,
    MODEL,
    PAGES,
    TASK,
    conversation,
    conversations,
    experience,
    prompt,
    trace,
    write_json,
    write_lines,
    write_traces,
)


def read(source: Path) -> tuple[str, list[OfflineEpisode], LeftOuts]:
    left_out = LeftOuts()
    form, episodes = read_source(source, left_out)
    return form, episodes, left_out


def assert_whole(episode: OfflineEpisode, task: str = TASK) -> None:
    assert episode.instruction == task
    assert [step.page for step in episode.steps] == list(PAGES)
    assert [step.response for step in episode.steps] == list(ANSWERS)
    assert [step.past for step in episode.steps] == [(), ANSWERS[:1], ANSWERS[:2]]


def test_a_prompt_is_read_back_as_what_it_was_made_of() -> None:
    found = read_prompt(prompt(2))
    assert (found.instruction, found.past, found.page) == (TASK, ANSWERS[:2], PAGES[2])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected 'Task Instruction"),
        ("Do something", "found 'Do something'"),
        (f"Task Instruction: \n\nRound 0\n\n{HUMAN}page\n\n{MODEL}", "expected 'Task Instruction"),
        (prompt(2).replace("Round 1", "Round 7"), "expected rounds 0 to 2 in order, found 0, 7, 2"),
        (prompt(2).replace(ANSWERS[0], ""), "round 0 has no answer"),
        (prompt(0).removesuffix(MODEL), "expected the prompt to end"),
        (prompt(0) + "do()", "expected the prompt to end"),
    ],
)
def test_a_text_that_is_no_prompt_of_this_form_is_refused_with_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(FormError, match=says):
        read_prompt(text)


def test_a_page_that_spells_out_rounds_and_roles_stays_the_page() -> None:
    page = f"<p> Round 9\n\nuser: {MODEL} do() </p> and so on"
    text = f"Task Instruction: {TASK}\n\nRound 0\n\n{HUMAN}{page}\n\n{MODEL}"
    assert read_prompt(text).page == page


@pytest.mark.parametrize("lines", [True, False])
def test_steps_of_two_tasks_are_put_together_whatever_their_order(lines: bool, tmp_path: Path) -> None:
    records = [*conversations(), *conversations("Another task")]
    random.Random(3).shuffle(records)
    source = write_lines(tmp_path / "a.jsonl", records) if lines else write_json(tmp_path / "a.json", records)
    form, episodes, left_out = read(source)
    assert (form, left_out.by_reason) == ("conversations", {})
    first, second = sorted(episodes, key=lambda episode: episode.instruction, reverse=True)
    assert_whole(first)
    assert_whole(second, "Another task")
    assert [episode.outcome for episode in episodes] == [1.0, 1.0], "only solved tasks are published"


def test_steps_without_their_first_one_are_an_episode_of_their_own(tmp_path: Path) -> None:
    _, episodes, _ = read(write_json(tmp_path / "a.json", [conversation(1), conversation(2)]))
    assert [[len(step.past) for step in episode.steps] for episode in episodes] == [[1, 2]]


def test_a_step_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    _, episodes, left_out = read(write_json(tmp_path / "a.json", [*conversations(), conversation(1)]))
    assert_whole(episodes[0])
    (example,) = left_out.by_reason[Reason.DUPLICATE].examples
    assert (example.file, example.record) == ("a.json", 4)


@pytest.mark.parametrize(
    ("reward", "outcome"), [(1, 1.0), (0.5, 1.0), (0, 0.0), (None, None), (-0.1, None), ("1", None)]
)
def test_the_outcome_of_experiences_is_their_trajectorys_reward(
    reward: object, outcome: float | None, tmp_path: Path
) -> None:
    flat = [experience(step, reward=reward) for step in (2, 0, 1)]
    nested = [[experience(step, "Another task", reward) for step in range(3)]]
    form, episodes, _ = read(write_json(tmp_path / "a.json", [*flat, *nested]))
    assert form == "experiences"
    assert [episode.outcome for episode in episodes] == [outcome, outcome]
    assert_whole(episodes[0])
    assert_whole(episodes[1], "Another task")


def test_traces_are_read_with_what_the_evaluator_said_of_them(tmp_path: Path) -> None:
    form, episodes, left_out = read(write_traces(tmp_path))
    assert (form, left_out.by_reason) == ("traces", {})
    found = {episode.task_id: episode for episode in episodes}
    assert_whole(found["7"])
    assert {task: episode.outcome for task, episode in found.items()} == {"7": 1.0, "11": 0.0, "12": None}
    assert found["11"].instruction == FAILED


def test_traces_that_were_processed_say_their_outcome_themselves(tmp_path: Path) -> None:
    rows = [{**row, "fixed_response": ANSWERS[i], "response": "as it came", "score": 1} for i, row in
            enumerate(trace(7, TASK, 3))]  # fmt: skip
    write_lines(tmp_path / "fixed_traces" / "7.jsonl", rows)
    _, episodes, _ = read(tmp_path)
    assert episodes[0].outcome == 1.0
    assert_whole(episodes[0])


def test_a_trace_with_a_damaged_row_is_left_out_as_a_whole(tmp_path: Path) -> None:
    write_traces(tmp_path)
    rows: list[Any] = trace(7, TASK, 3)
    rows[1]["html"] = 5
    write_lines(tmp_path / "traces" / "7.jsonl", rows)
    _, episodes, left_out = read(tmp_path)
    assert "7" not in {episode.task_id for episode in episodes}
    entry = left_out.by_reason[Reason.DAMAGED]
    assert (entry.steps, entry.examples[0].found) == (3, "expected a text html, found int")


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (5, "found int"),
        ({"a": 1, "b": 2}, "found ['a', 'b']"),
        ({"conversations": [{"from": "human", "value": "x"}]}, "found 1 turns"),
        ({"conversations": "x"}, "found str"),
        ({"conversations": [{"from": "gpt", "value": "x"}] * 2}, "to be from human and gpt"),
        ({"conversations": [{"from": "human", "value": 3}, {"from": "gpt", "value": "x"}]}, "expected a text value"),
        ({"observation": "x", "action": "y"}, "expected 'Task Instruction"),
        ({"observation": prompt(0)}, "expected a text action, found NoneType"),
        ([], "several or none"),
        ([experience(0), experience(1, "Another task")], "several or none"),
        ([experience(0), 7], "found one with a int"),
    ],
)
def test_a_record_of_no_known_form_is_left_out_with_its_number_and_what_was_found(
    record: object, says: str, tmp_path: Path
) -> None:
    _, episodes, left_out = read(write_json(tmp_path / "a.json", [*conversations(), record]))
    assert len(episodes) == 1
    (example,) = left_out.by_reason[Reason.DAMAGED].examples
    assert (example.file, example.record) == ("a.json", 4)
    assert says in example.found


def test_a_source_with_nothing_of_a_known_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "sft.pt").write_bytes(b"\x80\x02.")
    for source, says in (
        (tmp_path / "none.json", "cannot read"),
        (tmp_path / "empty.json", "it is empty"),
        (tmp_path / "empty", "expected a folder traces in it"),
        (tmp_path / "sft.pt", "is pickled, which Waymark never loads"),
        (
            write_json(tmp_path / "other.json", [{"instruction": "x", "output": "y"}]),
            r"found \['instruction', 'output'\]",
        ),
    ):
        with pytest.raises(SourceError, match=says):
            read(source)
