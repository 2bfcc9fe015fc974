"""A tiny policy with Llama's control tokens, for which offline data is imported."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.model_families import FAMILIES, save

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama's folder."""
    return save(FAMILIES["llama"], tmp_path_factory.mktemp("models") / "llama")
