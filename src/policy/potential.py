"""A critic beside the agent: how far along is a state? Run by onnxruntime in one thread, without torch.

Owns ``PotentialModel`` and the form of an exported critic's folder. Invariants: a file that has not the SHA-256 that
the folder's manifest names is not run; nothing in it is unpickled; prompts are those of the policy that the critic was
trained with, token for token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from policy.tokenizer import TOKENIZER_FILE
from records.durable import open_file, read_text
from records.episodes import FloatArray, IntArray

FORMAT = 1
MANIFEST = "critic.json"
Precision = Literal["float32", "int8"]
FILES: dict[Precision, str] = {"float32": "critic.onnx", "int8": "critic-int8.onnx"}
INPUTS, OUTPUT = ("input_ids", "last"), "answers"


@dataclass(frozen=True, slots=True)
class ExportedCritic:
    """What an exported critic's manifest says.

    ``files`` are SHA-256s by name, ``tokenizer`` is that of the policy's ``tokenizer.json``. ``largest_error`` and
    ``mean_error`` are by precision, against the critic itself on ``states`` recorded states.
    """

    format: int
    critic: str
    run: str
    checkpoint: str
    tokenizer: str
    files: dict[str, str]
    states: int
    largest_error: dict[str, float]
    mean_error: dict[str, float]


def read_exported(folder: Path) -> ExportedCritic:
    """Return the manifest of an exported critic.

    Raises:
        ValueError: there is none, or it is of another format.
    """
    from pydantic import TypeAdapter

    path = folder / MANIFEST
    try:
        exported = TypeAdapter(ExportedCritic).validate_json(read_text(path), strict=True)
        if exported.format != FORMAT:
            raise ValueError(f"expected format {FORMAT}, found {exported.format}")
        return exported
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: not an exported critic: {error}; make one with `waymark critic export`") from error


class PotentialModel:
    """The exported critic in ``folder``, asked with ``threads`` threads.

    Raises:
        ValueError: the folder holds no exported critic, or a file of it was changed.
        ImportError: onnxruntime is not installed.
    """

    def __init__(self, folder: Path, precision: Precision = "int8", threads: int = 1) -> None:
        self.exported = read_exported(folder)
        content = _verified(folder / FILES[precision], self.exported)
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError(
                "an exported critic needs onnxruntime: from the checkout, pip install -e '.[onnx]'"
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def ask(self, prompts: Sequence[IntArray]) -> FloatArray:
        """Return the critic's answers (B,) in [0, 1] for the states that these prompts (P,) describe."""
        if not prompts:
            return np.zeros(0, np.float32)
        ids = np.zeros((len(prompts), max(map(len, prompts))), np.int64)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)] = prompt  # what follows a prompt's last token is not seen from there
        last = np.array([len(prompt) - 1 for prompt in prompts], np.int64)
        (answers,) = self._session.run([OUTPUT], dict(zip(INPUTS, (ids, last), strict=True)))
        found: FloatArray = np.asarray(answers, np.float32)
        return found


def critic_for(folder: Path, tokenizer: Path) -> PotentialModel:
    """Return the exported critic in ``folder`` for a policy whose tokenizer lies in the folder ``tokenizer``.

    Raises:
        ValueError: there is none, it was changed, or it reads the prompts of another tokenizer.
        ImportError: onnxruntime is not installed.
    """
    critic = PotentialModel(folder)
    with open_file(tokenizer / TOKENIZER_FILE) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != critic.exported.tokenizer:
        raise ValueError(f"{folder} was exported for the policy of another tokenizer; export one of this policy's run")
    return critic


def _verified(path: Path, exported: ExportedCritic) -> bytes:
    """Return a file's content; raise ``ValueError`` where it is not what the manifest names."""
    try:
        with open_file(path) as file:
            content = file.read()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error
    if hashlib.sha256(content).hexdigest() != exported.files.get(path.name):
        raise ValueError(f"{path}: not the file that {MANIFEST} names; export the critic again")
    return content
