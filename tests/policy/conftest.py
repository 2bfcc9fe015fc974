"""A small tokenizer, trained once, that the policy tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from policy.tokenizer import TextTokenizer
from policy.tokenizer_training import train_tokenizer

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
