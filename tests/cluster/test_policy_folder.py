"""A run's policy folder appears whole or not at all, and only from the very files that were shipped."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from safetensors import safe_open

from cluster.errors import MissingError
from cluster.recipe.recipe import build_recipe, load_recipe
from cluster.run_folder import policy_folder
from cluster.run_folder.durable import sha256_file
from cluster.run_folder.policy_folder import copy_checkpoint, write_checksums
from cluster.task_sets import TaskSets
from cluster.tiny_policy import build_policy, read_along
from environments.interface.grammar import parse
from policy.hub import CHECKSUMS
from records.episodes import Task

TINY = {"width": 32, "layers": 1, "heads": 2, "key_value_heads": 2, "mlp_width": 32, "vocab_size": 700}


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    folder = tmp_path / "shipped"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    write_checksums(folder)
    return folder


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    recipe = build_recipe({"run": {"training_tasks": 30, "evaluation": {"tasks_per_split": 4}}})
    return [spec.task for spec in TaskSets(recipe).demonstrations("flawless", 6, flawless=True)]


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_shipped_policy_is_copied_whole(shipped: Path, tmp_path: Path) -> None:
    copy_checkpoint(shipped, tmp_path / "run" / "policy")
    assert left_in(tmp_path / "run") == {"policy"}
    copied = {path.name: path.read_bytes() for path in (tmp_path / "run" / "policy").iterdir()}
    assert copied == {path.name: path.read_bytes() for path in shipped.iterdir()}


@pytest.mark.parametrize("harm", ["changed", "gone"])
def test_a_file_that_is_not_the_shipped_one_is_named_and_nothing_is_copied(
    shipped: Path, tmp_path: Path, harm: str
) -> None:
    weights = shipped / "model.safetensors"
    if harm == "changed":
        weights.write_bytes(b"Weights")
    else:
        weights.unlink()
    with pytest.raises(MissingError) as caught:
        copy_checkpoint(shipped, tmp_path / "policy")
    assert "model.safetensors" in str(caught.value)
    assert "config.json" not in str(caught.value)
    assert "warm_start.clone" in str(caught.value)
    assert left_in(tmp_path) == {"shipped"}


@pytest.mark.parametrize("content", [None, "{"])
def test_a_folder_without_readable_checksums_is_refused(shipped: Path, tmp_path: Path, content: str | None) -> None:
    (shipped / CHECKSUMS).unlink()
    if content is not None:
        (shipped / CHECKSUMS).write_text(content)
    with pytest.raises(MissingError, match=f"cannot read {CHECKSUMS}"):
        copy_checkpoint(shipped, tmp_path / "policy")
    assert not (tmp_path / "policy").exists()


@pytest.mark.parametrize("name", ["\ud800", "x" * 5000, "../outside.txt", "/etc/hostname"])
def test_a_name_that_is_no_file_of_the_folder_is_refused(shipped: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.txt").write_text("there")
    digest = sha256_file(tmp_path / "outside.txt")
    (shipped / "checksums.json").write_text(json.dumps({name: digest}))
    with pytest.raises(MissingError, match="are missing or have changed"):
        copy_checkpoint(shipped, tmp_path / "policy")


def test_a_copy_that_was_cut_short_leaves_no_policy_and_is_done_again(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "run" / "policy"

    def full_disk(source: Path, into: Path) -> None:
        into.mkdir(parents=True)
        (into / "config.json").write_text("{}")
        (into / "half").write_text("")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(policy_folder.shutil, "copytree", full_disk)
    with pytest.raises(OSError, match="No space"):
        copy_checkpoint(shipped, target)
    assert not target.exists()
    monkeypatch.undo()
    copy_checkpoint(shipped, target)
    assert left_in(target) == left_in(shipped)
    assert left_in(target.parent) == {"policy"}


def test_checksums_name_every_file_but_themselves(shipped: Path) -> None:
    write_checksums(shipped)
    assert json.loads((shipped / CHECKSUMS).read_text()).keys() == {"config.json", "model.safetensors"}


def test_what_a_policy_folder_holds_further_down_is_checked_too(shipped: Path, tmp_path: Path) -> None:
    (shipped / "critics").mkdir()
    (shipped / "critics" / "value.safetensors").write_bytes(b"numbers")
    write_checksums(shipped)
    copy_checkpoint(shipped, tmp_path / "policy")
    assert (tmp_path / "policy" / "critics" / "value.safetensors").read_bytes() == b"numbers"
    (shipped / "critics" / "value.safetensors").write_bytes(b"other numbers")
    with pytest.raises(MissingError, match=r"critics/value.safetensors are missing or have changed"):
        copy_checkpoint(shipped, tmp_path / "other")


async def test_reading_along_gives_instructions_pages_and_parsable_actions(tasks: list[Task]) -> None:
    texts = await read_along(tasks, site_seed=0)
    assert [task.intent for task in tasks] == [text for text in texts if text in {task.intent for task in tasks}]
    pages = [text for text in texts if text.startswith("@ ")]
    actions = [text for text in texts if "do(" in text or text.startswith(("exit(", "go_backward("))]
    assert len(pages) == len(actions) == sum(task.horizon for task in tasks)
    assert sum(parse(action).kind == "exit" for action in actions) == len(tasks)


def test_a_policy_is_built_whole_and_the_same_from_the_same_seed(tasks: list[Task], tmp_path: Path) -> None:
    from policy.models import load_causal_lm
    from policy.tokenizer import TextTokenizer

    recipe = build_recipe({"policy": {"tiny": TINY}, "run": {"seed": 3}})
    first, again = tmp_path / "a" / "policy", tmp_path / "b" / "policy"
    half = tmp_path / "b" / ".policy.new" / "policy"  # what a killed run leaves
    half.mkdir(parents=True)
    (half / "half").write_text("")
    for target in (first, again):
        build_policy(recipe, tasks, target)
        assert left_in(target.parent) == {"policy"}
    assert {path.name: path.read_bytes() for path in first.iterdir()} == {
        path.name: path.read_bytes() for path in again.iterdir()
    }
    tokenizer = TextTokenizer.load(str(first))
    text = 'do(action="Click", element="0")'
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert load_causal_lm(str(first)).config.vocab_size >= tokenizer.vocab_size


def test_a_tiny_that_thinks_has_learned_words_for_the_tags_and_another_has_not(
    tasks: list[Task], tmp_path: Path
) -> None:
    from policy.formats import get_format
    from policy.tokenizer import TextTokenizer

    lengths: dict[bool, int] = {}
    for thinking in (False, True):
        build_policy(build_recipe({"policy": {"tiny": TINY, "thinking": thinking}}), tasks, tmp_path / f"{thinking}")
        tokenizer = TextTokenizer.load(tmp_path / f"{thinking}")
        written = get_format("waymark", thinking=True)
        ids = written.action_ids(tokenizer, "go_backward()")
        assert written.action_text(tokenizer, ids) == "go_backward()"
        lengths[thinking] = len(ids)
    assert lengths[True] == 4 * 3 + 3 + 1 + 1, "signs and word of each tag; breaks; the call with its own; the stop"
    assert lengths[False] > lengths[True]


def test_a_build_that_was_cut_short_leaves_no_policy(
    tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import policy.presets

    def killed(settings: object, folder: Path, **options: object) -> None:
        folder.mkdir(parents=True)
        (folder / "tokenizer.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(policy.presets, "prepare_policy", killed)
    with pytest.raises(KeyboardInterrupt):
        build_policy(build_recipe({"policy": {"tiny": TINY}}), tasks, tmp_path / "policy")
    assert not (tmp_path / "policy").exists()


def test_the_policy_of_the_laptop_recipe_is_whole_and_small(tmp_path: Path) -> None:
    recipe = load_recipe(Path(policy_folder.__file__).parents[1] / "recipes" / "laptop.yaml")
    assert recipe.warm_start.checkpoint
    copy_checkpoint(recipe.checkpoint_path, tmp_path / "policy")
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= left_in(tmp_path / "policy")
    files = [path for path in (tmp_path / "policy").rglob("*") if path.is_file()]
    assert [path for path in files if path.parent.name == "critics"], "the critics come with it"
    assert sum(path.stat().st_size for path in files) < 10 * 2**20
    with safe_open(tmp_path / "policy" / "model.safetensors", "np") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118 - it is no mapping
    assert sum(math.prod(shape) for shape in shapes) < 2_500_000
