"""A small tokenizer, trained once, that the policy tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from policy.models import save_policy
from policy.presets import build_tiny
from policy.settings import TinyShape
from policy.tokenizer import TextTokenizer
from policy.tokenizer_training import train_tokenizer

# More threads than cores make small models many times slower.
torch.set_num_threads(1)

PAGE = """@ Lamps
link Home 0
searchbox Search 1
# Lamps
link Red desk lamp 2
Price $12.50
link Blue desk lamp 11
select Colour = Red (Red | Blue) 12
button Add to cart 42"""

CORPUS = [PAGE, 'Buy the "Red desk lamp" in Blue', '# Element: Add to cart\ndo(action="Click", element="42")'] * 20


@pytest.fixture(scope="session")
def tokenizer_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a tokenizer of at most 700 tokens."""
    return train_tokenizer(CORPUS, 700, tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="session")
def tokenizer(tokenizer_dir: Path) -> TextTokenizer:
    """The same, loaded."""
    return TextTokenizer.load(tokenizer_dir)


@pytest.fixture(scope="session")
def corpus() -> list[str]:
    """What it was trained on."""
    return CORPUS


@pytest.fixture(scope="session")
def page() -> str:
    """An observation in the waymark format."""
    return PAGE


TINY = TinyShape(width=32, layers=2, heads=2, key_value_heads=2, mlp_width=48, context_tokens=256)


@pytest.fixture
def tiny(tokenizer: TextTokenizer) -> PreTrainedModel:
    """A very small untrained policy of its own for each test."""
    return build_tiny(TINY, tokenizer, seed=0)


@pytest.fixture
def other_tiny(tokenizer: TextTokenizer) -> PreTrainedModel:
    """The same shape with other weights."""
    return build_tiny(TINY, tokenizer, seed=1)


@pytest.fixture(scope="session")
def policy_dir(tokenizer: TextTokenizer, tokenizer_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``tiny`` as a policy directory."""
    return save_policy(build_tiny(TINY, tokenizer, seed=0), tokenizer_dir, tmp_path_factory.mktemp("model") / "policy")
