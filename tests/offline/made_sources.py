"""Offline trajectories in their published forms, made by hand: one task of three steps, and one of two that failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HUMAN, MODEL = (f"<|eot_id|><|start_header_id|>{role}<|end_header_id|>\n" for role in ("user", "assistant"))
TASK = "List orders where the status is Canceled and the recipient is Jennifer White"
PAGES = (
    '<html data-bbox="0,0,1280,720"> <span id="1" data-text="Dashboard"> Dashboard </span> '
    '<span id="2" data-text="Sales"> Sales </span> </html>',
    '<html data-bbox="0,0,1280,720"> <span id="2"> Sales </span> <a id="4" data-text="Orders"> Orders </a> </html>',
    '<html data-bbox="0,0,1280,720"> <td data-text="#299"> #299 Jennifer White Canceled </td> </html>',
)
ANSWERS = (
    '# Element: the \'Sales\' menu item on the left sidebar, second from the top\ndo(action="Click", element="2")',
    '# Element: the \'Orders\' link\ndo(action="Click", element="4")',
    'exit(message="#299")',
)
FAILED = "Delete all reviews from the scammer Carlo"


def prompt(step: int, task: str = TASK) -> str:
    """The prompt of a step as WebRL writes it."""
    rounds = "".join(
        f"Round {i}\n\n{HUMAN}{'** Simplified html **' if i else task}\n\n{MODEL}{ANSWERS[i]}\n\n" for i in range(step)
    )
    return f"Task Instruction: {task}\n\n{rounds}Round {step}\n\n{HUMAN}{PAGES[step]}\n\n{MODEL}"


def conversation(step: int, task: str = TASK, answer: str | None = None) -> dict[str, Any]:
    """A record of the data for supervised training."""
    turns = [{"from": "human", "value": prompt(step, task)}, {"from": "gpt", "value": answer or ANSWERS[step]}]
    return {"conversations": turns, "system": ""}


def conversations(task: str = TASK) -> list[dict[str, Any]]:
    """All steps of a task."""
    return [conversation(step, task) for step in range(3)]


def experience(step: int, task: str = TASK, reward: object = 1) -> dict[str, Any]:
    """A step of what WebRL's actor learns from."""
    observation, after = prompt(step, task), prompt(min(step + 1, 2), task)
    return {
        "observation": observation, "next_observation": after, "task": task, "reward": reward, "done": step == 2,
        "action": ANSWERS[step], "trajectory_reward": reward,
    }  # fmt: skip


def write_json(file: Path, records: object) -> Path:
    file.write_text(json.dumps(records), encoding="utf-8")
    return file


def write_lines(file: Path, records: list[Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


def trace(task_id: int, task: str, steps: int) -> list[dict[str, Any]]:
    """What is written of one task while it is played."""
    return [
        {
            "trace_id": task_id, "index": i, "prompt": "** Simplified html **" if i else task, "html": PAGES[i],
            "response": ANSWERS[i], "target": task,
        }
        for i in range(steps)
    ]  # fmt: skip


def write_traces(folder: Path) -> Path:
    """A folder with one solved task, one that failed, and one that was never rated."""
    for task_id, task, steps, score in ((7, TASK, 3, 1.0), (11, FAILED, 2, 0.0), (12, "Open the forum", 1, -0.1)):
        write_lines(folder / "traces" / f"{task_id}.jsonl", trace(task_id, task, steps))
        (folder / "actions").mkdir(exist_ok=True)
        write_json(folder / "actions" / f"{task_id}.json", {"task_id": task_id, "score": score, "actions": []})
    return folder
