"""Similarity of instructions: the default encoder and the seam where another one goes."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curriculum.similarity import EmbeddingSimilarity, TfidfEncoder

CORPUS = [
    "Buy the cheapest blue kettle",
    "Buy the cheapest red kettle",
    "Write a review of the wooden chair",
    "Post a comment in the gardening forum",
    "Subscribe to the forum about books",
]


def test_an_instruction_is_nearest_to_its_own_kind():
    scores = EmbeddingSimilarity(TfidfEncoder(CORPUS)).scores(
        ["Buy the dearest green kettle", "Leave forum books"], CORPUS
    )
    assert scores.shape == (2, 5)
    assert set(np.argsort(-scores[0])[:2]) == {0, 1}
    assert np.argmax(scores[1]) == 4


def test_inflected_words_are_alike():
    encoder = TfidfEncoder(CORPUS)
    scores = EmbeddingSimilarity(encoder).scores(["reviewing chairs"], CORPUS)
    assert np.argmax(scores[0]) == 2


def test_rare_words_weigh_more_than_frequent_ones():
    # "the" is in most of the corpus, "chair" in one: sharing "chair" counts for more.
    scores = EmbeddingSimilarity(TfidfEncoder(CORPUS)).scores(["the chair"], ["see the lamp", "see a chair"])
    assert scores[0, 1] > scores[0, 0]


def test_weights_worked_by_hand():
    # One-letter words have two terms: the word and its only 3-gram " a ". Corpus N = 2, df(a) = 2, df(b) = 1:
    # idf(a) = ln(3/3) + 1 = 1, idf(b) = ln(3/2) + 1 = 1.4055. cos("a b", "a") = 1 / sqrt(1 + 1.4055^2) = 0.5797.
    scores = EmbeddingSimilarity(TfidfEncoder(["a b", "a"])).scores(["a b"], ["a"])
    assert scores[0, 0] == pytest.approx(1 / np.sqrt(1 + (np.log(1.5) + 1) ** 2), abs=1e-5)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_rows_have_length_one_or_zero(texts):
    rows = TfidfEncoder(CORPUS).encode(texts)
    norms = np.linalg.norm(rows, axis=1)
    assert rows.dtype == np.float32
    assert np.all(np.isclose(norms, 1, atol=1e-5) | (norms == 0))


def test_an_empty_text_is_like_nothing():
    assert EmbeddingSimilarity(TfidfEncoder(CORPUS)).scores(["", "!?"], CORPUS).max() == 0


def test_vectors_do_not_depend_on_the_process():
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from curriculum.similarity import TfidfEncoder\n"
        f"print(TfidfEncoder({CORPUS!r}).encode(['blue chair']).nonzero()[1].tolist())"
    )
    here = TfidfEncoder(CORPUS).encode(["blue chair"]).nonzero()[1].tolist()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.strip() == str(here)
