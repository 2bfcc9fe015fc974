"""The embedded sites' tasks, made again from what a run keeps of them."""

from __future__ import annotations

import json

from sites.collections import COLLECTIONS
from sites.registry import SITES
from sites.task_source import EmbeddedTasks


def test_every_templates_task_comes_back_from_its_parameters_as_json() -> None:
    source = EmbeddedTasks((*SITES, *COLLECTIONS))
    tasks = source.task_set(0, "train", 400)
    assert len({task.template for task in tasks}) > 50
    assert [source.task(task.template, json.loads(json.dumps(task.parameters))) for task in tasks] == tasks
