"""Checkpoints and weights of models that are spread over ranks: every tensor is there, for any number of ranks."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from learner.checkpoints import read_checkpoint, write_checkpoint
from learner.errors import CheckpointError, RankError
from learner.optimiser import adamw
from learner.pieces import StoredPart
from learner.ranks import Ranks
from learner.sharding import spread
from policy.models import load_causal_lm
from policy.published_weights import PublishedWeights
from policy.tensor_files import write_tensors
from policy.weights import own_tensors, put_weights, read_weights, write_weights
from tests.learner.rank_group import on_ranks


def tensors_by_address(module: nn.Module) -> dict[str, Tensor]:
    """What told tied tensors apart before (the control of these tests): addresses, which are 0 for spread ones."""
    seen: set[tuple[int, torch.Size]] = set()
    tensors: dict[str, Tensor] = {}
    for name, tensor in module.state_dict().items():
        key = (tensor.data_ptr(), tensor.shape)
        if key not in seen:
            seen.add(key)
            tensors[name] = tensor
    return tensors


def trained(model_dir: Path | str, ranks: Ranks | None = None) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return the model after two updates, whose gradients are the same for any number of ranks."""
    model: nn.Module = load_causal_lm(model_dir)
    if ranks is not None:
        spread(model, ranks, "float32")
    optimiser = adamw(model, 1e-2, 0.0)
    for _ in range(2):
        optimiser.zero_grad(set_to_none=True)
        model(input_ids=torch.arange(24).reshape(2, 12), use_cache=False).logits.square().mean().backward()
        optimiser.step()
    return model, optimiser


def state(model: nn.Module, optimiser: torch.optim.Optimizer, ranks: Ranks) -> dict[str, Tensor]:
    moments = {
        f"{index}.{name}": value
        for index, parameter in enumerate(model.parameters())
        for name, value in optimiser.state[parameter].items()
    }
    return {
        name: ranks.full_tensor(tensor).detach().clone() for name, tensor in {**own_tensors(model), **moments}.items()
    }


def save_spread(model_dir: str, folder: str) -> None:
    """Write a checkpoint and what it should hold; note what the control would have kept."""
    ranks = Ranks.of_group("cpu")
    model, optimiser = trained(model_dir, ranks)
    write_checkpoint(Path(folder) / "spread", {"actor": model}, {"actor": optimiser}, {"phases": 3}, ranks)
    found, tensors = state(model, optimiser, ranks), own_tensors(model)
    kept = [sorted(tensors), sorted(tensors_by_address(model))]
    if ranks.first:
        weights = write_weights(tensors, Path(folder) / "weights.safetensors", 7, ranks.full_tensor)
        torch.save({"state": found, "kept": kept, "weights": asdict(weights)}, Path(folder) / "expected.pt")
    else:
        for name in sorted(tensors):
            ranks.full_tensor(tensors[name])


def load_spread(model_dir: str, folder: str) -> None:
    """Load what one rank wrote and what two wrote, and leave what the ranks then hold; refuse a damaged one."""
    ranks = Ranks.of_group("cpu")
    model: nn.Module = load_causal_lm(model_dir)
    spread(model, ranks, "float32")
    optimiser = adamw(model, 1e-2, 0.0)
    for source in ("one", "spread"):
        assert read_checkpoint(Path(folder) / source, {"actor": model}, {"actor": optimiser}, ranks)["phases"] == 3
        found = state(model, optimiser, ranks)
        if ranks.first:
            torch.save(found, Path(folder) / f"found-{source}.pt")
    with pytest.raises((CheckpointError, RankError), match=r"actor-00002-of-00002.safetensors is missing or does not"):
        read_checkpoint(Path(folder) / "damaged", {"actor": model}, {}, ranks)
    assert same(found, state(model, optimiser, ranks))


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def damage(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


@pytest.fixture(scope="module")
def folder(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with checkpoints that one rank and two wrote, and what two read of each."""
    folder = tmp_path_factory.mktemp("two")
    on_ranks(2, save_spread, folder, model_dir, folder)
    model, optimiser = trained(model_dir)
    write_checkpoint(folder / "one", {"actor": model}, {"actor": optimiser}, {"phases": 3})
    torch.save(state(model, optimiser, Ranks()), folder / "expected-of-one.pt")
    shutil.copytree(folder / "spread", folder / "damaged")
    damage(folder / "damaged" / "actor-00002-of-00002.safetensors")
    on_ranks(2, load_spread, folder, model_dir, folder)
    return folder


def test_every_tensor_of_a_spread_model_is_kept_and_by_addresses_most_are_lost(folder: Path) -> None:
    whole, by_address = torch.load(folder / "expected.pt")["kept"]
    assert len(whole) > 20
    assert len(by_address) < len(whole) / 2
    stored = {name for file in folder.glob("spread/actor-*.safetensors") for name in load_file(file)}
    assert sorted(stored) == whole


def test_two_ranks_checkpoint_is_read_by_one_and_by_two_bit_for_bit(folder: Path, model_dir: Path) -> None:
    expected = torch.load(folder / "expected.pt")["state"]
    model = load_causal_lm(model_dir)
    optimiser = adamw(model, 1e-2, 0.0)
    read_checkpoint(folder / "spread", {"actor": model}, {"actor": optimiser})
    assert same(expected, state(model, optimiser, Ranks()))
    assert same(expected, torch.load(folder / "found-spread.pt"))


def test_one_ranks_checkpoint_is_read_by_two_and_both_learned_the_same(folder: Path) -> None:
    one, two = torch.load(folder / "expected-of-one.pt"), torch.load(folder / "expected.pt")["state"]
    assert same(one, torch.load(folder / "found-one.pt"))
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=1e-5, atol=1e-6)


def test_published_weights_of_two_ranks_are_the_whole_models(folder: Path, model_dir: Path) -> None:
    expected = torch.load(folder / "expected.pt")
    model = load_causal_lm(model_dir)
    put_weights(model, read_weights(PublishedWeights(**expected["weights"])))
    assert all(torch.equal(tensor, expected["state"][name]) for name, tensor in own_tensors(model).items())


def test_each_rank_hashed_what_it_wrote(folder: Path) -> None:
    digests = json.loads((folder / "spread" / "manifest.json").read_text())
    files = {f"{part}-0000{rank}-of-00002.safetensors" for part in ("actor", "actor.optimiser") for rank in (1, 2)}
    assert digests.keys() == {*files, "state.json"}
    assert all(hashlib.sha256((folder / "spread" / name).read_bytes()).hexdigest() == digests[name] for name in digests)


def test_missing_rows_are_noticed_also_where_the_manifest_does_not_name_them(folder: Path, model_dir: Path) -> None:
    with pytest.raises(CheckpointError, match="rows of actor's .* are missing"):
        StoredPart(folder / "spread", "actor", ["actor-00001-of-00002.safetensors"])


def test_files_are_byte_for_byte_those_of_the_format(tmp_path: Path) -> None:
    tensors = {
        "b": torch.randn(3, 4), "a": torch.randn(5).bfloat16(), "number": torch.tensor(3.0), "none": torch.zeros(0, 3),
        "i": torch.arange(4), "ö": torch.ones(3, dtype=torch.uint8), "yes": torch.ones(3, dtype=torch.bool),
    }  # fmt: skip
    for metadata in (None, {"version": "1"}):
        file = io.BytesIO()
        digest = write_tensors(file, tensors, metadata)
        assert file.getvalue() == save(tensors, metadata)
        assert digest == hashlib.sha256(file.getvalue()).hexdigest()
