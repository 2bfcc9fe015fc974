"""WebArena's task files as records: nothing lost, nothing guessed, and errors that say where."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from environments.webarena.tasks.files import (
    TaskFileError,
    geolocation,
    load_tasks,
    needed_sites,
    rules_of,
    viewport,
)
from judges.rules import WEBARENA, WEBARENA_LITE
from tests.not_files import NOT_FILES, at_once

FILES = Path(__file__).parents[4] / "shared" / "webarena_lite"
"""The public task files; they lie beside the repository, not in it."""
real_files = pytest.mark.skipif(not FILES.is_dir(), reason=f"WebArena's task files are not at {FILES}")
COUNTS = {"webarena_test": 812, "test_webarena_lite": 165, "webagentr1_train_webarena_lite": 647}

ENTRY = {
    "sites": ["shopping", "reddit"],
    "task_id": 3,
    "require_login": True,
    "storage_state": "./.auth/shopping.reddit_state.json",
    "start_url": "__SHOPPING__/a |AND| __REDDIT__",
    "geolocation": None,
    "intent_template": "Buy {{thing}}",
    "instantiation_dict": {"thing": "tea", "n": 2, "all": ["x"]},
    "intent": "Buy tea",
    "require_reset": False,
    "eval": {
        "eval_types": ["program_html"],
        "reference_answers": None,
        "reference_url": "",
        "program_html": [{"url": "last", "locator": "", "required_contents": {"must_include": "tea"}}],
        "annotation_note": "kept",
    },
    "intent_template_id": 17,
    "note of ours": {"kept": [1, None]},
}


def changed(**changes) -> dict:
    return {**deepcopy(ENTRY), **changes}


def changed_eval(**changes) -> dict:
    return changed(eval={**deepcopy(ENTRY["eval"]), **changes})


def changed_url(url: str, locator: str = "") -> dict:
    return changed_eval(program_html=[{"url": url, "locator": locator, "required_contents": {"must_include": "tea"}}])


def nested(depth: int) -> list:
    return [nested(depth - 1)] if depth else []


@pytest.fixture
def write(tmp_path):
    def _write(*entries: object) -> Path:
        path = tmp_path / "tasks.json"
        path.write_text(json.dumps(list(entries)), encoding="utf-8")
        return path

    return _write


def test_a_task_is_typed_and_keeps_its_object(write):
    (task,) = load_tasks(write(ENTRY), split="train")
    assert task.raw == ENTRY
    assert task.evaluation == ENTRY["eval"]
    assert (task.task_id, task.template, task.split) == ("webarena.3", "webarena.17", "train")
    assert task.sites == ("shopping", "reddit")
    assert task.parameters == {"thing": "tea", "n": 2, "all": ["x"]}
    assert task.require_login
    assert not task.require_reset
    assert task.start_url == "__SHOPPING__/a |AND| __REDDIT__"
    assert rules_of(task) is WEBARENA


def test_lite_tasks_have_ids_rules_and_a_family_of_their_own(write):
    (task,) = load_tasks(write(changed(old_task_id=40)))
    assert (task.task_id, task.template) == ("webarena_lite.40", "webarena.17")
    assert rules_of(task) is WEBARENA_LITE


def test_place_and_viewport_are_typed(write):
    place = {"latitude": 40.4, "longitude": -79.9}
    tasks = load_tasks(write(changed(geolocation=place, viewport_size={"width": 1280}), changed(task_id=4)))
    assert (geolocation(tasks[0]).latitude, geolocation(tasks[0]).longitude) == (40.4, -79.9)
    assert (viewport(tasks[0]).width, viewport(tasks[0]).height) == (1280, None)
    assert geolocation(tasks[1]) is None
    assert viewport(tasks[1]) is None


def test_every_site_that_a_task_speaks_of_is_needed(write):
    target = {"url": "__GITLAB__/x", "locator": "", "required_contents": {"must_include": ["__MAP__/y"]}}
    path = write(changed_eval(program_html=[target]))
    (task,) = load_tasks(path)
    assert needed_sites(task) == ("shopping", "reddit", "gitlab", "map")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (changed(intent=5), r"task 1: intent: expected a valid string, found 5"),
        (changed(task_id="3"), r"task 1: task_id: expected a valid integer, found '3'"),
        (changed(require_login="yes"), r"require_login: expected a valid boolean, found 'yes'"),
        (changed(sites=[]), r"sites: expected .*at least 1 item.*, found \[\]"),
        (changed(sites=["shop"]), r"sites\.0: expected 'shopping', .*, found 'shop'"),
        (changed(geolocation={"latitude": 91.0, "longitude": 0.0}), r"geolocation\.latitude: expected .* found 91.0"),
        (changed(viewport_size={"width": 0}), r"viewport_size\.width: expected greater than 0, found 0"),
        (changed_eval(eval_types=["string_soft"]), r"eval\.eval_types\.0: expected 'string_match', .* 'string_soft'"),
        (changed_eval(eval_types=["string_match"]), r"eval: expected reference_answers with at least one rule"),
        (changed_eval(eval_types=["url_match"]), r"eval: expected an address in reference_url"),
        (changed_eval(program_html=[]), r"eval: expected at least one target in program_html"),
        (changed_eval(program_html=[{"url": "last"}]), r"eval\.program_html\.0\.locator: expected a value, found no"),
        (changed_eval(url_note="PRED in GOLD"), r"eval\.url_note: expected 'GOLD in PRED' or 'EXACT', found 'PRED"),
        ({k: v for k, v in ENTRY.items() if k != "start_url"}, r"start_url: expected a value, found no such key"),
        ([], r"task 1: expected an object, found \[\]"),
        (
            changed(storage_state="/etc/passwd"),
            r"storage_state: expected a path under .* '/etc/passwd'",
        ),
        (changed(storage_state="./.auth/../../x"), r"storage_state: expected a path under the working folder"),
        (changed(storage_state="C:\\x"), r"storage_state: expected a path under the working folder"),
        (changed(start_url="file:///etc/passwd"), r"task 1: start_url: expected an address on one of the sites"),
        (changed(start_url="javascript:alert(1)"), r"expected an address on one of the sites"),
        (changed(start_url="http://evil.test/"), r"expected an address on one of the sites"),
        (changed(start_url="__SHOPPING__/ |AND| //evil.test"), r"expected an address on one of the sites"),
        (changed(start_url="__SHOPPING__.evil.test/"), r"expected an address on one of the sites"),
        (changed(start_url="__SHOPPING__@evil.test/"), r"expected an address on one of the sites"),
        (changed(start_url=" |AND| ".join(["__MAP__/"] * 9)), r"start_url: expected the addresses of at most 8 tabs"),
        (
            changed_url("data:text/html,x"),
            r"program_html\.0\.url: expected an address .*, found 'data:text",
        ),
        (changed_url("http://169.254.169.254/"), r"eval\.program_html\.0\.url: expected an address"),
        (
            changed_url("func:open('/etc/passwd')"),
            r"html\.0\.url: expected a call of gitlab.* found .func:open",
        ),
        (changed_url("func:__import__('os').system('x')"), r"url: expected func:name\('argument', …\) with string"),
        (changed_url("func:" + "(" * 100_000), r"url: expected a call of gitlab_get.* in at most 1000 characters"),
        (changed_url("last", "func:eval('1')"), r"program_html\.0: expected a call of gitlab_get"),
        (
            changed_eval(eval_types=["url_match"], reference_url="__MAP__ |OR| ftp://x"),
            r"eval: expected an address on one",
        ),
        (changed(task_id=10**10), r"task_id: expected less than or equal to 1000000000, found 10000000000"),
        (changed(task_id=-1), r"task_id: expected greater than or equal to 0, found -1"),
        (
            changed(viewport_size={"width": 10**6, "height": 1}),
            r"viewport_size\.width: expected less than or equal to 10000",
        ),
        (changed(instantiation_dict={"x": nested(40)}), r"task 1: expected lists and objects nested at most 16 deep"),
        (ENTRY, r"task 1: expected an id of its own, found webarena.3 again"),
    ],
)
def test_a_malformed_task_is_named_with_file_number_key_expected_and_found(write, entry, message):
    path = write(ENTRY, entry)
    with pytest.raises(TaskFileError, match=message) as raised:
        load_tasks(path)
    assert str(raised.value).startswith(str(path))
    assert len(str(raised.value).removeprefix(str(path))) < 600, "an error is a line, however long the file"


DEEP = "[" * 1_000_000
HUGE = json.dumps([ENTRY]).replace('"task_id": 3', f'"task_id": {"9" * 5000}')
NOT_A_NUMBER = json.dumps([changed(geolocation={"latitude": float("nan"), "longitude": 0.0})])
INFINITE = json.dumps([ENTRY]).replace(
    '"geolocation": null', '"geolocation": {"latitude": 1, "longitude": 0, "accuracy": 1e999}'
)


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", "3", DEEP, HUGE, NOT_A_NUMBER])
def test_what_is_no_list_of_tasks_is_refused(tmp_path, content):
    path = tmp_path / "tasks.json"
    path.write_text(content)
    with pytest.raises(TaskFileError, match=r"tasks.json: expected"):
        load_tasks(path)


def test_a_number_beyond_all_bounds_is_refused(tmp_path):
    path = tmp_path / "tasks.json"
    path.write_text(INFINITE)
    with pytest.raises(TaskFileError, match=r"task 0: geolocation.accuracy: expected a finite number, found inf"):
        load_tasks(path)


def test_a_file_of_absurd_size_is_refused_unread(tmp_path):
    path = tmp_path / "tasks.json"
    with path.open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(TaskFileError, match="expected at most 67108864 bytes, found 68157440"):
        load_tasks(path)


@pytest.mark.parametrize("kind", [kind for kind in NOT_FILES if "link" not in kind])
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    NOT_FILES[kind](tmp_path / "it")
    with at_once(), pytest.raises(TaskFileError, match=f"it: expected a file, found {kind}; correct the path"):
        load_tasks(tmp_path / "it")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(TaskFileError, match=r"none.json: expected a task file, found none: No such file"):
        load_tasks(tmp_path / "none.json")


@real_files
@pytest.mark.parametrize("name", COUNTS)
def test_public_files_load_without_loss(name):
    path = FILES / f"{name}.raw.json"
    entries = json.loads(path.read_text(encoding="utf-8"))
    tasks = load_tasks(path)
    assert len(tasks) == COUNTS[name]
    assert [task.raw for task in tasks] == entries
    assert json.dumps([task.raw for task in tasks]) == json.dumps(entries)


@real_files
def test_lite_tests_and_training_tasks_are_apart_and_share_templates():
    lite, train = (load_tasks(FILES / f"{name}.raw.json") for name in list(COUNTS)[1:])
    assert not {task.task_id for task in lite} & {task.task_id for task in train}
    templates = {task.template for task in train}
    assert sum(task.template in templates for task in lite) == 143
