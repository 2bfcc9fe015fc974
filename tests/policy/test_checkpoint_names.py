"""What a model's files hold, told of its tensors in memory; and what cannot be told so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers.core_model_loading import Chunk, Interleave, Transpose, WeightConverter, WeightRenaming

from policy.checkpoint_names import NoViews, checkpoint_views, misfit_of_folder, other_names
from policy.models import load_causal_lm
from policy.weights import own_tensors
from tests.model_families import EXPERTS, FAMILIES, SEEING, Family, save

QWEN = FAMILIES["qwen"]


@pytest.mark.parametrize("family", [*FAMILIES.values(), SEEING, EXPERTS], ids=lambda family: family.name)
def test_views_of_a_loaded_model_are_what_its_files_hold(tmp_path: Path, family: Family) -> None:
    folder = save(family, tmp_path / "model")
    model = load_causal_lm(folder)
    own, stored = own_tensors(model), load_file(folder / "model.safetensors")
    views = checkpoint_views(model, own)
    assert views.keys() == stored.keys()
    for name, view in views.items():
        found = view.of(own[view.source])
        assert torch.equal(found, stored[name])
        assert found.untyped_storage().data_ptr() == own[view.source].untyped_storage().data_ptr(), "nothing is copied"
    assert (other_names(model, own) is None) is (family.name in FAMILIES)
    assert misfit_of_folder(folder) == ""


def test_a_tensor_that_is_turned_is_a_view(tmp_path: Path) -> None:
    model = load_causal_lm(save(QWEN, tmp_path / "model"))
    model._weight_conversions = [
        WeightConverter("mlp.down_proj.weight", "mlp.down_proj.weight", [Transpose(0, 1)]),
        WeightRenaming("transformer", "model"),
    ]
    own = own_tensors(model)
    views = other_names(model, own)
    assert views is not None
    view = views["transformer.layers.1.mlp.down_proj.weight"]
    assert torch.equal(view.of(own[view.source]), own["model.layers.1.mlp.down_proj.weight"].T)


@pytest.mark.parametrize(
    "conversion",
    [
        WeightConverter("mlp.down_proj.weight", "mlp.down_proj.weight", [Interleave(dim=0)]),
        WeightConverter("mlp.fused.weight", ["mlp.gate_proj.weight", "mlp.up_proj.weight"], [Chunk(dim=0)]),
    ],
    ids=["in another order", "joined"],
)
def test_what_is_no_part_of_one_tensor_is_not_told(tmp_path: Path, conversion: WeightConverter) -> None:
    model = load_causal_lm(save(QWEN, tmp_path / "model"))
    model._weight_conversions = [conversion]
    own = own_tensors(model)
    with pytest.raises(NoViews):
        checkpoint_views(model, own)
    assert other_names(model, own) is None
