"""A trained outcome model on the disk: a policy folder with ``outcome.json``, which says how its answers are read.

Owns ``OutcomeModel`` with its ``OutcomeProbe``, its reading and its writing. Invariants: the folder is used only where
its files are those that its ``checksums.json`` names; nothing of it is evaluated or unpickled. Imports no torch.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from records.durable import open_file, read_text

FILE_NAME = "outcome.json"
CHECKSUMS = "checksums.json"


@dataclass(frozen=True, slots=True)
class OutcomeProbe:
    """What the model says of ``prompts``: of each the log-probabilities of yes and no, at temperature 1."""

    prompts: tuple[tuple[int, ...], ...]
    logprobs: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class OutcomeModel:
    """How a model's log-probabilities of two tokens become a probability of success.

    ``yes`` and ``no`` are the tokens that answer; ``page`` is whether prompts show the last page. The log-odds of the
    two, less ``bias`` and divided by ``temperature``, are those of success; from ``threshold`` on it counts as one.
    ``checksum`` is the SHA-256 of the folder's checksums, by which labels name the model. By ``probe`` a server proves
    that it serves the model; folders of earlier versions have none.
    """

    yes: int
    no: int
    max_prompt_tokens: int
    page: bool
    temperature: float
    bias: float
    threshold: float
    checksum: str = ""
    probe: OutcomeProbe | None = None

    def probability(self, log_odds: float) -> float:
        """Return the probability of success in [0, 1]."""
        scaled = (log_odds - self.bias) / self.temperature
        return 1.0 / (1.0 + math.exp(-scaled)) if scaled > 0 else math.exp(scaled) / (1.0 + math.exp(scaled))


def write_outcome_model(model: OutcomeModel, folder: Path) -> None:
    """Write ``outcome.json``; the folder's checksums come after it."""
    content = {name: value for name, value in asdict(model).items() if name != "checksum"}
    (folder / FILE_NAME).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_outcome_model(folder: Path) -> OutcomeModel:
    """Return what ``folder`` says of its model, after comparing its files with their checksums.

    Raises:
        ValueError: it is no such folder, or a file is missing or has changed; the text says which.
    """
    try:
        named = read_text(folder / CHECKSUMS)
        digests: dict[str, str] = TypeAdapter(dict[str, str]).validate_json(named)
        wrong = [n for n, digest in digests.items() if Path(n).name != n or _sha256(folder / n) != digest]
        content: dict[str, Any] = json.loads(read_text(folder / FILE_NAME))
        checksum = hashlib.sha256(named.encode("utf-8")).hexdigest()
        whole = json.dumps({**content, "checksum": checksum})
        found = TypeAdapter(OutcomeModel).validate_json(whole, strict=True)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{folder}: expected an outcome model, as `waymark judge train` writes one: {error}"
        ) from error
    if wrong or FILE_NAME not in digests:
        raise ValueError(f"{folder}: {', '.join(wrong) or FILE_NAME} changed since `waymark judge train` wrote it")
    if not (found.temperature > 0 and math.isfinite(found.temperature) and math.isfinite(found.bias)):
        raise ValueError(f"{folder}: expected a temperature above 0 and a finite bias, found {found}")
    return found


def _sha256(path: Path) -> str:
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
