"""A run starts from the model that its recipe names, as it is, and goes on only while it is that model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.utils import filter_repo_objects
from safetensors.torch import load_file, save_file

from cluster.errors import ManifestError, MissingError
from cluster.preflight.start import check_start
from cluster.recipe.recipe import Recipe, build_recipe
from cluster.run_folder.durable import sha256_file
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.named_model import copy_model, lay_out_model, model_record, require_same_model
from cluster.run_folder.policy_folder import require_unchanged
from policy.chat_marks import CHAT_FILE
from policy.tokenizer import TextTokenizer
from records.checks import Check, Status
from tests.model_families import EXPERTS, FAMILIES, SEEING, Family, save, save_tokenizer

WHOLE = {
    "config.json": '{"eos_token_id": 1995, "max_position_embeddings": 2048}',
    "tokenizer.json": (Path(__file__).parents[2] / "cluster/recipes/tiny-cloned/tokenizer.json").read_text(),
    "model-00001-of-00002.safetensors": "first",
    "model-00002-of-00002.safetensors": "second",
    "model.safetensors.index.json": '{"weight_map": {"a": "model-00001-of-00002.safetensors", '
    '"b": "model-00002-of-00002.safetensors"}}',
}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PAID = ["learner.value_target=shaped"]
GROUPS = ["learner.algorithm=webagent_r1", "run.attempts_per_task=2"]
BY_INSTRUCTION = ["learner.data=rollouts_and_replay_by_instruction"]


def fill(folder: Path, **more: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in {**WHOLE, **more}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return fill(tmp_path / "models" / "some")


def named(model: object, *overrides: str) -> Recipe:
    return build_recipe({}, [f"policy.model={model}", *overrides])


def failed(recipe: Recipe) -> list[Check]:
    return [check for check in check_start(recipe) if check.status is Status.FAIL]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ([], True),
        (["warm_start.checkpoint=x"], False),
        (["warm_start.checkpoint=x", "warm_start.clone=always"], True),
        (["policy.model=some/model"], False),
        (["policy.model=some/model", "warm_start.clone=always"], True),
        (["warm_start.checkpoint=x", "warm_start.clone=never"], False),
    ],
)
def test_demonstrations_are_cloned_onto_a_fresh_tiny_or_where_asked(start: list[str], expected: bool) -> None:
    assert build_recipe({}, start).clones is expected


def test_the_run_has_a_copy_of_the_model_and_of_nothing_else(model: Path, tmp_path: Path) -> None:
    other_form = ("consolidated.safetensors", "consolidated.safetensors.index.json", "params.json")
    for name in ("pytorch_model.bin", "modeling_own.py", "README.md", "adapter.safetensors", *other_form):
        (model / name).write_text("not wanted")
    policy = tmp_path / "out" / "policy"
    copy_model(named(model).policy, {}, policy)
    copied = {path.name: path.read_text() for path in policy.iterdir() if path.name != "checksums.json"}
    assert copied == WHOLE
    require_unchanged(policy)
    (policy / "model-00001-of-00002.safetensors").write_text("other")
    with pytest.raises(ManifestError, match=r"model-00001-of-00002\.safetensors are missing or have changed"):
        require_unchanged(policy)


def test_a_single_file_of_weights_is_the_model_also_beside_an_index(model: Path, tmp_path: Path) -> None:
    (model / "model.safetensors").write_text("all")
    copy_model(named(model).policy, {}, tmp_path / "policy")
    copied = {path.name for path in (tmp_path / "policy").iterdir()}
    assert copied == {"config.json", "tokenizer.json", "model.safetensors", "checksums.json"}


def test_an_index_that_cannot_be_read_is_said_in_a_sentence(model: Path, tmp_path: Path) -> None:
    (model / "model.safetensors.index.json").write_text("[]")
    with pytest.raises(MissingError, match=r"model\.safetensors\.index\.json cannot be read: TypeError.*download"):
        model_record(named(model).policy)


def test_a_run_that_began_with_files_of_another_form_goes_on_while_they_are_the_same(model: Path) -> None:
    record = model_record(named(model).policy)
    other = model / "consolidated.safetensors"
    other.write_text("other")
    began = {**record, other.name: sha256_file(other)}
    require_same_model(named(model).policy, began)
    other.write_text("another")
    with pytest.raises(ManifestError, match=r"began: consolidated\.safetensors;"):
        require_same_model(named(model).policy, began)


def test_an_evaluation_reads_the_files_where_they_lie(model: Path, tmp_path: Path) -> None:
    lay_out_model(named(model).policy, tmp_path / "seen", os.symlink)
    assert {path.name: path.read_text() for path in (tmp_path / "seen").iterdir()} == WHOLE
    assert all(path.is_symlink() for path in (tmp_path / "seen").iterdir())


@pytest.mark.parametrize("harm", ["changed", "gone", "more"])
def test_a_run_goes_on_only_with_the_files_that_it_began_with(model: Path, tmp_path: Path, harm: str) -> None:
    out = tmp_path / "out"
    RunManifest.open(out, named(model))
    RunManifest.open(out, named(model))
    weights = model / "model-00002-of-00002.safetensors"
    if harm == "gone":
        weights.unlink()
    else:
        (weights if harm == "changed" else model / "added_tokens.json").write_text("Second")
    with pytest.raises(ManifestError) as caught:
        RunManifest.open(out, named(model))
    said = str(caught.value)
    assert ("added_tokens.json" if harm == "more" else weights.name) in said
    assert "config.json" not in said
    assert f"policy.model {model}" in said


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """A hub with one model at one commit; the revisions that it is asked for."""
    snapshot = fill(tmp_path / "cache" / "snapshots" / COMMIT)
    asked: list[str | None] = []

    def fetch(name: str, *, revision: str | None, allow_patterns: list[str], ignore_patterns: list[str]) -> str:
        assert name == "organisation/some"
        on_hub = [*WHOLE, "consolidated.safetensors", "params.json", "onnx/model.safetensors", "original/config.json"]
        assert list(filter_repo_objects(on_hub, allow_patterns=allow_patterns, ignore_patterns=ignore_patterns)) == [
            *WHOLE
        ]
        assert not any(pattern.endswith((".py", ".bin")) for pattern in allow_patterns)
        asked.append(revision)
        if revision not in (None, COMMIT, "v1"):
            raise huggingface_hub.errors.LocalEntryNotFoundError(f"no {revision}")
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    return asked


@pytest.mark.parametrize("revision", ["", "v1", COMMIT])
def test_a_model_of_the_hub_stays_at_the_commit_that_the_run_began_with(
    hub: list[str | None], tmp_path: Path, revision: str
) -> None:
    recipe, out = named("organisation/some", f"policy.revision={revision!r}"), tmp_path / "out"
    header = RunManifest.open(out, recipe).header
    assert header["model"] == {"commit": COMMIT}
    copy_model(recipe.policy, header["model"], out / "policy")
    assert hub == [revision or None, COMMIT]
    assert (out / "policy" / "config.json").read_text() == WHOLE["config.json"]
    RunManifest.open(out, recipe)
    assert len(hub) == 2, "going on asks the hub for nothing"


def test_what_the_hub_does_not_give_is_said_in_a_sentence(hub: list[str | None]) -> None:
    with pytest.raises(
        MissingError, match=r"policy\.model organisation/some, policy\.revision gone: .*no gone; look at"
    ):
        model_record(named("organisation/some", "policy.revision=gone").policy)


def test_tiny_has_no_record() -> None:
    assert model_record(Recipe().policy) == {}


def test_a_whole_model_is_found(model: Path) -> None:
    assert [check.status for check in check_start(named(model))] == [Status.OK]


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ({"pytorch_model.bin": "x"}, "its weights are pickled (pytorch_model.bin), which Waymark never loads"),
        ({"model-00001-of-00002.safetensors": "version https://git-lfs.github.com/spec/v1"}, "a pointer of Git LFS"),
        ({"model.safetensors.index.json": "[]"}, "model.safetensors.index.json cannot be read"),
        (
            {"model.safetensors.index.json": '{"weight_map": {"a": "gone.safetensors"}}'},
            "names gone.safetensors, which",
        ),
    ],
)
def test_weights_that_cannot_be_loaded_are_told_before_anything_starts(
    model: Path, harm: dict[str, str], said: str
) -> None:
    for name, text in harm.items():
        (model / name).write_text(text)
    if "pytorch_model.bin" in harm:
        for path in model.glob("*.safetensors"):
            path.unlink()
    (check,) = failed(named(model))
    assert check.name == "policy.model"
    assert said in check.found


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["policy.revision=v1"], "policy.revision"),
        (["policy.model=tiny", "policy.revision=v1"], "policy.revision"),
        (["warm_start.checkpoint=somewhere"], "warm_start.checkpoint"),
        (["policy.model=tiny", "warm_start.clone=never"], "warm_start.clone"),
        (["learner.algorithm=sft", "run.phases=2"], "run.phases"),
        (["learner.algorithm=filtered_bc", "run.phases=2", "curriculum.value_band=true"], "curriculum.value_band"),
        (["learner.value_target=return", "run.phases=2", "curriculum.value_band=true"], "curriculum.value_band"),
        (
            [*PAID, "learner.advantage=undiscounted", "run.phases=2", "curriculum.value_band=true"],
            "curriculum.value_band",
        ),
        (["learner.algorithm=awr", *BY_INSTRUCTION, "learner.value_target=return", "run.phases=2"], "learner.data"),
        ([*GROUPS, "rollout.top_p=0.9", "run.phases=2"], "rollout.top_p"),
    ],
)
def test_settings_that_contradict_each_other_are_told(model: Path, overrides: list[str], name: str) -> None:
    assert [check.name for check in failed(named(model, *overrides))] == [name]


@pytest.mark.parametrize(
    "overrides",
    [
        ["learner.value_target=return", "learner.advantage=undiscounted", "curriculum.value_band=true"],
        ["learner.algorithm=webrl", *PAID, "curriculum.value_band=true"],
        ["learner.algorithm=awr", *BY_INSTRUCTION],
        ["learner.algorithm=digirl", "learner.value_target=return"],
        ["learner.algorithm=mira", "rollout.top_p=0.9"],
        GROUPS,
    ],
)
def test_settings_that_go_together_are_not_refused(model: Path, overrides: list[str]) -> None:
    assert failed(named(model, "run.phases=2", *overrides)) == []


@pytest.mark.parametrize("algorithm", ["sft", "filtered_bc"])
def test_an_evaluation_has_no_phases_to_contradict(model: Path, algorithm: str) -> None:
    contradiction = [f"learner.algorithm={algorithm}", "run.phases=0", "curriculum.value_band=true"]
    assert failed(named(model, *contradiction)) == []


def test_an_algorithm_that_only_clones_is_told_that_nothing_is_cloned(model: Path) -> None:
    def warned(*overrides: str) -> list[str]:
        checks = check_start(named(model, "learner.algorithm=sft", *overrides))
        return [check.name for check in checks if check.status is Status.WARN]

    assert warned() == ["warm_start.clone"]
    assert warned("warm_start.clone=always") == []


def test_a_policy_that_is_to_think_is_told_of_too_little_room_and_of_not_being_told_how(model: Path) -> None:
    def warned(*overrides: str) -> list[str]:
        return [check.name for check in check_start(named(model, *overrides)) if check.status is Status.WARN]

    thinks, room = "policy.thinking=true", "policy.max_new_tokens=256"
    assert warned("policy.max_new_tokens=255") == []
    assert warned(thinks) == ["policy.max_new_tokens", "policy.instructions"]
    assert warned(thinks, "policy.max_new_tokens=255", "policy.instructions=true") == ["policy.max_new_tokens"]
    assert warned(thinks, room) == ["policy.instructions"]
    assert warned(thinks, room, "warm_start.clone=always") == []
    assert warned(thinks, room, "policy.instructions=true") == []


def test_a_moving_revision_is_named() -> None:
    def said(*overrides: str) -> Any:
        return check_start(named("organisation/some", *overrides))[0]

    assert "newest commit" in said().found
    assert "newest commit" not in said(f"policy.revision={COMMIT}").found


@pytest.fixture
def talker(model: Path) -> Path:
    """A model that was trained on dialogue."""
    save_tokenizer(FAMILIES["qwen"], model)
    return model


def test_the_marks_of_a_dialogue_are_made_once_and_are_part_of_the_runs_policy(talker: Path, tmp_path: Path) -> None:
    policy = tmp_path / "out" / "policy"
    copy_model(named(talker, "policy.prompt_format=chat").policy, {}, policy)
    plain = TextTokenizer.load(policy).chat
    assert plain is not None
    copy_model(named(talker, "policy.prompt_format=chat", "policy.thinking=true").policy, {}, tmp_path / "thinking")
    thinking = TextTokenizer.load(tmp_path / "thinking").chat
    assert thinking is not None
    assert thinking.cue == thinking.reply != plain.cue
    require_unchanged(policy)
    (policy / CHAT_FILE).write_text((policy / CHAT_FILE).read_text() + " ")
    with pytest.raises(ManifestError, match=CHAT_FILE):
        require_unchanged(policy)
    assert not (talker / CHAT_FILE).exists()
    lay_out_model(named(policy).policy, tmp_path / "plain", os.symlink)
    assert not (tmp_path / "plain" / CHAT_FILE).exists(), "prompts that are no dialogue end as the model's files say"


def test_a_model_without_a_chat_template_makes_no_dialogue(model: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=f"policy.model {model}: .* has no chat template"):
        copy_model(named(model, "policy.prompt_format=chat").policy, {}, tmp_path / "policy")
    assert not (tmp_path / "policy").exists()


def test_a_check_says_whether_prompts_fit_the_model(model: Path) -> None:
    def found(*overrides: str) -> list[tuple[str, Status]]:
        return [(c.name, c.status) for c in check_start(named(model, *overrides)) if c.status is not Status.OK]

    chat = "policy.prompt_format=chat"
    assert found() == []
    assert found(chat) == [("policy.prompt_format", Status.FAIL)]
    save_tokenizer(FAMILIES["gemma"], model)
    assert found(chat) == []
    assert found() == [("policy.prompt_format", Status.WARN)]
    assert found(chat, "policy.model=tiny") == [("policy.prompt_format", Status.FAIL)]


def test_a_model_whose_context_is_too_short_for_prompt_and_reply_is_told(model: Path) -> None:
    context = json.loads((model / "config.json").read_text())["max_position_embeddings"]
    fits = [f"policy.max_prompt_tokens={context - 64}", "policy.max_new_tokens=64"]
    assert failed(named(model, *fits)) == []
    (check,) = failed(named(model, *fits, "policy.max_new_tokens=65"))
    assert check.name == "policy.max_prompt_tokens"
    assert f"holds {context} tokens" in check.found


def test_a_damaged_tokenizer_is_told_before_anything_starts(model: Path) -> None:
    file = model / "tokenizer.json"
    file.write_bytes(file.read_bytes()[:-20])
    (check,) = failed(named(model))
    assert (check.name, "is no tokenizer" in check.found) == ("policy.model", True)


VLLM = ["policy.backend=vllm", "policy.max_prompt_tokens=1000", "policy.max_new_tokens=64"]


@pytest.mark.parametrize("family", [SEEING, EXPERTS], ids=lambda family: family.name)
def test_names_that_vllm_would_not_know_are_told_before_anything_starts(tmp_path: Path, family: Family) -> None:
    model = save(family, tmp_path / "model")
    assert failed(named(model, *VLLM)) == []
    tensors = load_file(model / "model.safetensors")
    name = next(name for name in tensors if name.endswith("input_layernorm.weight"))
    tensors["another.weight"] = tensors.pop(name)
    save_file(tensors, model / "model.safetensors", {"format": "pt"})
    (check,) = failed(named(model, *VLLM))
    assert check.name == "policy.model"
    assert "another.weight" in check.found
    assert failed(named(model, *VLLM, "policy.backend=torch")) == []
    assert failed(named(model, *VLLM, "learner.adapters.rank=4")) == []


def test_a_model_that_cannot_be_built_is_not_held_against_its_names(model: Path) -> None:
    (check,) = [check for check in check_start(named(model, *VLLM)) if check.status is not Status.OK]
    assert check.status is Status.WARN
    assert f"{model} cannot be built" in check.found
