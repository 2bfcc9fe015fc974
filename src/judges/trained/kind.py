"""The judge ``trained`` as a kind: its settings, how it is made, and what is looked at before a run.

Imports what it is made of when it is made: a recipe that has no trained judge loads none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from judges.kinds import JudgeKind, Judges, TasksBySplit
from policy.settings import DEVICE
from policy.vllm.places import check_url
from records.bounds import at_least, require
from records.checks import Check, Status

if TYPE_CHECKING:
    from judges.trained.judge import TrainedJudge


@dataclass(frozen=True)
class TrainedSettings:
    """The judge ``trained``: where its outcome model is, and what serves it."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = ("url", "token_variable", "device", "threads")

    folder: str = ""
    """Folder of the outcome model, as ``waymark judge train`` writes one."""

    url: str = ""
    """Address of a vLLM server with this folder's model, such as ``http://10.0.0.7:8000``; it has to prove that it
    serves it. Empty: the judge starts a process of its own, which computes with torch."""

    token_variable: str = "WAYMARK_VLLM_TOKEN"
    """Environment variable with the token that the server of ``url`` asks for; unset sends none."""

    device: str = "cpu"
    """Torch device of that process."""

    threads: int = 1
    """Threads of that process."""

    def __post_init__(self) -> None:
        """Refuse what no process could be started with."""
        if self.url:
            check_url(self.url, "url")
        at_least(self, 1, "threads")
        require(bool(DEVICE.fullmatch(self.device)), "device", "cpu, mps, cuda or cuda:N", self.device)


def _make(settings: TrainedSettings, judges: Judges) -> TrainedJudge:
    from judges.trained.judge import TrainedJudge

    return TrainedJudge(settings)


def _preflight(settings: TrainedSettings, judges: Judges, tasks: TasksBySplit) -> list[Check]:
    """Look whether the model is there, whole, and whether the server, if any, serves it."""
    from judges.trained.model import read_outcome_model
    from judges.trained.server import look

    try:
        found = read_outcome_model(Path(settings.folder).expanduser())
    except ValueError as error:
        return [Check("judge trained", Status.FAIL, str(error), "name its folder in judges.trained.folder")]
    there = Check("judge trained", Status.OK, f"{settings.folder}, threshold {found.threshold:.3g}")
    return [there, look(settings, found)] if settings.url else [there]


TRAINED = JudgeKind(settings=TrainedSettings, make=_make, preflight=_preflight)
"""The judge ``trained``."""
