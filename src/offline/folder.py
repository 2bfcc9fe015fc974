"""A folder of imported data: shards, and beside them what they were made of, for which policy, and what was left out.

Owns ``DataReport`` and its file ``import.json``, and reading a folder back. Invariant: a folder fits one
tokenizer, prompt format and dialogue, which it names; its shards are those that the report names, byte for byte.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

import pydantic

from offline.left_out import LeftOut, LeftOuts
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from records.durable import read_text, replace_file
from records.episodes import Trajectory
from replay.shards import write_shard

REPORT_FILE = "import.json"
_FORMAT = 1
_EPISODES_A_SHARD = 64


class DataFolderError(ValueError):
    """A folder is no data that was imported, or has changed since; the text says what to do."""


@dataclass(frozen=True)
class MadeFor:
    """What prompts and actions are made by: a tokenizer and the marks of its dialogue (by digest), and a format.

    ``thinking`` came later: what was imported before has no thoughts.
    """

    tokenizer: str
    prompt_format: str
    instructions: bool
    chat: str
    thinking: bool = False

    @classmethod
    def of(cls, tokenizer: TextTokenizer, settings: PolicySettings) -> MadeFor:
        """Return what prompts of these settings are made by."""
        marks = hashlib.sha256(repr(tokenizer.chat).encode()).hexdigest() if settings.dialogue else ""
        return cls(tokenizer.digest, settings.prompt_format, settings.instructions, marks, settings.thinking)

    def differences(self, other: MadeFor) -> list[str]:
        """Return in words what differs from ``other``, which a run asks for."""
        named = {"tokenizer": "another tokenizer", "chat": "another chat template"}
        mine, theirs = asdict(self), asdict(other)
        return [
            named.get(name, f"{name} {mine[name]!r} instead of {theirs[name]!r}")
            for name in mine
            if mine[name] != theirs[name]
        ]


@dataclass(frozen=True)
class DataReport:
    """What a folder holds and what was left out of its source.

    ``successes`` are the ``episodes`` with outcome 1; ``truncated_pages`` are steps whose page is cut; lengths are in
    tokens. ``shards`` has the SHA-256 of each file.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    source: str
    form: str
    made_for: MadeFor
    episodes: int
    successes: int
    steps: int
    truncated_pages: int
    longest_prompt: int
    longest_action: int
    left_out: dict[str, LeftOut]
    shards: dict[str, str]
    format: int = _FORMAT


def write_data(
    folder: Path,
    trajectories: Iterable[Trajectory],
    *,
    source: str,
    form: str,
    made_for: MadeFor,
    left_out: LeftOuts,
) -> DataReport:
    """Write shards and the report to ``folder``, which is there and empty, and return the report.

    ``left_out`` is read last, for it may fill while the trajectories are made.
    """
    counts: Counter[str] = Counter()
    longest_prompt = longest_action = 0
    shards: dict[str, str] = {}
    for batch in _batches(trajectories):
        info = write_shard(folder, batch, "offline")
        shards[info.path.name] = info.sha256
        steps = [step for trajectory in batch for step in trajectory.steps]
        counts["episodes"] += len(batch)
        counts["successes"] += sum(trajectory.success for trajectory in batch)
        counts["steps"] += len(steps)
        counts["truncated_pages"] += sum(step.truncated_tokens > 0 for step in steps)
        longest_prompt = max(longest_prompt, *(len(step.prompt_ids) for step in steps))
        longest_action = max(longest_action, *(len(step.action_ids) for step in steps))
    report = DataReport(
        source=source,
        form=form,
        made_for=made_for,
        episodes=counts["episodes"],
        successes=counts["successes"],
        steps=counts["steps"],
        truncated_pages=counts["truncated_pages"],
        longest_prompt=longest_prompt,
        longest_action=longest_action,
        left_out={str(reason): entry for reason, entry in left_out.by_reason.items()},
        shards=shards,
    )
    replace_file(folder / REPORT_FILE, pydantic.TypeAdapter(DataReport).dump_json(report, indent=1) + b"\n")
    return report


def read_report(folder: Path) -> DataReport:
    """Return a folder's report; raise ``DataFolderError`` where it has none that can be used."""
    file = folder / REPORT_FILE
    try:
        report = pydantic.TypeAdapter(DataReport).validate_json(read_text(file))
    except (OSError, ValueError) as error:
        raise DataFolderError(f"{file}: {error}; name a folder that `waymark data import` made") from error
    strange = [name for name in report.shards if Path(name).name != name]
    if report.format != _FORMAT or strange:
        raise DataFolderError(f"{file}: expected format {_FORMAT} and plain names; import the data again")
    return report


def _batches(trajectories: Iterable[Trajectory]) -> Iterator[Sequence[Trajectory]]:
    left = iter(trajectories)
    while batch := list(islice(left, _EPISODES_A_SHARD)):
        yield batch
