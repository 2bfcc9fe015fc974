"""Load and save causal language models: any Hugging Face architecture, safetensors only.

Owns the form of a policy directory: ``config.json``, ``model.safetensors``, and the files of the tokenizer and of what
else prepares the model's inputs.
Pickled weights and code from a model repository are never loaded.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging as transformers_logging

from policy.chat_marks import CHAT_FILE
from policy.hub import CHECKSUMS, settings_files

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def load_causal_lm(path: str | Path, *, dtype: str = "float32", device: str = "cpu") -> PreTrainedModel:
    """Load a causal language model in evaluation mode.

    Args:
        path: a policy directory.
        dtype: ``float32`` or ``bfloat16``.
        device: torch device to put it on.

    Raises:
        ValueError: unknown ``dtype``.
        OSError: no such model, or it has no safetensors file.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {sorted(DTYPES)}, found {dtype!r}")
    transformers_logging.disable_progress_bar()
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        str(path), dtype=DTYPES[dtype], use_safetensors=True, trust_remote_code=False
    )
    model.to(device)  # type: ignore[arg-type]
    return model.eval()


def save_policy(model: PreTrainedModel, tokenizer_dir: str | Path, path: str | Path) -> Path:
    """Write the model, and what prepares its inputs, to the directory ``path``, which appears complete or not at all.

    From ``tokenizer_dir`` come the tokenizer's files, the processor's of a model that also sees, and what else is
    there of the model's settings and not written with it.

    Raises:
        OSError: ``path`` is there already and not an empty directory; it is left as it was.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    transformers_logging.disable_progress_bar()
    try:
        model.save_pretrained(scratch)
        for source in (*settings_files(Path(tokenizer_dir)), Path(tokenizer_dir) / CHAT_FILE):
            target_file = scratch / source.name
            if source.is_file() and source.name != CHECKSUMS and not target_file.exists():
                shutil.copyfile(source, target_file)
        scratch.chmod(0o755)
        os.rename(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target
