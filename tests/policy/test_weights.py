"""Weights arrive as they left, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import PreTrainedModel

from policy.published_weights import PublishedWeights, WeightsRejected, read_published, write_published
from policy.weights import put_weights, read_weights, write_weights
from tests.not_files import NOT_FILES, at_once


def test_weights_travel_exactly_and_tied_ones_once(
    tiny: PreTrainedModel, other_tiny: PreTrainedModel, tmp_path: Path
) -> None:
    weights = write_weights(other_tiny.state_dict(), tmp_path / "w.safetensors", 7)
    with safe_open(weights.path, "pt") as file:
        assert file.metadata() == {"version": "7"}
        assert "lm_head.weight" not in file.keys()  # noqa: SIM118 - not a mapping
    put_weights(tiny, read_weights(weights))
    assert tiny.get_output_embeddings().weight is tiny.get_input_embeddings().weight
    for name, tensor in other_tiny.state_dict().items():
        assert torch.equal(tiny.state_dict()[name], tensor)


def test_the_same_weights_and_version_give_the_same_checksum(tiny: PreTrainedModel, tmp_path: Path) -> None:
    first, again, later = (write_weights(tiny.state_dict(), tmp_path / f"{i}", v) for i, v in enumerate((1, 1, 2)))
    assert first.checksum == again.checksum != later.checksum


def test_a_changed_byte_is_noticed(tiny: PreTrainedModel, tmp_path: Path) -> None:
    weights = write_weights(tiny.state_dict(), tmp_path / "w", 1)
    content = bytearray((tmp_path / "w").read_bytes())
    content[-1] ^= 1
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(WeightsRejected, match="expected checksum"):
        read_weights(weights)


def test_a_missing_file_and_a_file_of_another_kind_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(WeightsRejected, match="cannot read"):
        read_weights(PublishedWeights(1, "0", str(tmp_path / "none")))
    (tmp_path / "text").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    with pytest.raises(WeightsRejected, match="not a safetensors file"):
        read_weights(PublishedWeights(1, empty, str(tmp_path / "text")))


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 5000])
def test_a_path_that_can_be_none_is_rejected(path: str) -> None:
    with pytest.raises(WeightsRejected, match="cannot read the weights of version 3"):
        read_weights(PublishedWeights(3, "0" * 64, path))


def test_weights_that_do_not_fit_leave_the_model_as_it_was(tiny: PreTrainedModel, other_tiny: PreTrainedModel) -> None:
    before = {name: tensor.clone() for name, tensor in tiny.state_dict().items()}
    new = other_tiny.state_dict()
    name = "model.layers.1.mlp.up_proj.weight"
    for wrong, message in [
        ({**new, "extra": torch.zeros(1)}, "extra"),
        ({k: v for k, v in new.items() if k != name}, "missing.*up_proj"),
        ({**new, name: new[name][:1]}, "another shape.*up_proj"),
    ]:
        with pytest.raises(WeightsRejected, match=message):
            put_weights(tiny, wrong)
        assert all(torch.equal(tiny.state_dict()[k], v) for k, v in before.items())


def test_a_failed_write_leaves_the_old_file(
    tiny: PreTrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = write_weights(tiny.state_dict(), tmp_path / "w", 1)

    def full(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_weights(tiny.state_dict(), tmp_path / "w", 2)
    monkeypatch.undo()
    assert read_weights(weights)
    assert [p.name for p in tmp_path.iterdir()] == ["w"]


def test_the_file_that_names_them_comes_back_and_a_torn_one_is_named(tmp_path: Path) -> None:
    weights = PublishedWeights(3, "abc", "/somewhere")
    write_published(weights, tmp_path / "m.json")
    assert read_published(tmp_path / "m.json") == weights
    (tmp_path / "m.json").write_text('{"version": 3')
    with pytest.raises(WeightsRejected, match=r"m\.json names no published weights"):
        read_published(tmp_path / "m.json")


@pytest.mark.parametrize("kind", NOT_FILES)
def test_what_lies_in_place_of_weights_or_of_their_name_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    NOT_FILES[kind](tmp_path / "it")
    with at_once():
        with pytest.raises(WeightsRejected, match="names no published weights"):
            read_published(tmp_path / "it")
        with pytest.raises(WeightsRejected, match="cannot read the weights of version 1"):
            read_weights(PublishedWeights(1, "0", str(tmp_path / "it")))
