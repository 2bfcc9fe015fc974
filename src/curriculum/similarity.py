"""How alike are two instructions? Scores for the curriculum's search of tasks like those that failed.

Owns the protocols ``Encoder`` (texts to unit vectors) and ``Similarity`` (scores of pairs), and the
default encoder: TF-IDF over words and character n-grams, which needs no model and no download. Another
encoder (a sentence transformer) or another scorer (a judge) takes its place without the curriculum
knowing. Deterministic across processes and machines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
_WORD = re.compile(r"\w+")


class Encoder(Protocol):
    """Turns texts into vectors."""

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Return (N, D) rows of length one; a text without content is a row of zeros."""
        ...


class Similarity(Protocol):
    """Scores how alike texts are."""

    def scores(self, queries: Sequence[str], candidates: Sequence[str]) -> Matrix:
        """Return (Q, N) scores, higher meaning more alike."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingSimilarity:
    """Cosine of an encoder's vectors."""

    encoder: Encoder

    def scores(self, queries: Sequence[str], candidates: Sequence[str]) -> Matrix:
        """Return (Q, N) cosines, rounded so that equal texts tie on every machine."""
        return np.round(self.encoder.encode(queries) @ self.encoder.encode(candidates).T, 5)


class TfidfEncoder:
    """TF-IDF over words and character 3- to 5-grams, hashed into a fixed number of columns.

    Term frequency is damped, 1 + ln(tf); inverse document frequency is smoothed,
    ln((1 + N) / (1 + df)) + 1, over the corpus. N-grams carry the similarity of inflected or misspelt words.
    """

    def __init__(self, corpus: Sequence[str], dimension: int = 4096) -> None:
        self.dimension = dimension
        frequency = np.zeros(dimension, dtype=np.float64)
        for text in corpus:
            frequency[list(self._counts(text))] += 1
        self._idf = np.log((1 + len(corpus)) / (1 + frequency)) + 1

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Return (N, dimension) rows of length one."""
        matrix = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(matrix, texts, strict=True):
            counts = self._counts(text)
            columns = list(counts)
            values = (1 + np.log(np.fromiter(counts.values(), dtype=np.float64))) * self._idf[columns]
            norm = np.sqrt(values @ values)
            row[columns] = values / norm if norm > 0 else 0.0
        return matrix

    def _counts(self, text: str) -> Counter[int]:
        # crc32 and not hash(): the latter differs from one process to the next.
        return Counter(crc32(term.encode("utf-8", "replace")) % self.dimension for term in _terms(text))


def _terms(text: str) -> Iterator[str]:
    """Yield each word, marked as one, and the character n-grams within it."""
    for word in _WORD.findall(text.lower()):
        yield f"={word}"
        padded = f" {word} "
        for size in (3, 4, 5):
            for start in range(len(padded) - size + 1):
                yield padded[start : start + size]
