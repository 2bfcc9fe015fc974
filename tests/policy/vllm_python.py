"""Where the tests find vLLM: a Python of its own, made by ``make vllm``."""

from __future__ import annotations

from pathlib import Path

import pytest

VLLM_PYTHON = str(Path(__file__).parents[2] / ".venv-vllm" / "bin" / "python")

needs_vllm = pytest.mark.skipif(
    not Path(VLLM_PYTHON).exists(), reason="no vLLM in .venv-vllm: `make vllm` installs it (Linux)"
)
