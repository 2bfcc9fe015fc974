"""What a study keeps of a finished run: a small file, from which it is compared on any machine.

Owns ``RunRecord`` and its file. Invariants: whatever a study tells of a run is in its record; a record says which
recipe the run had and which weights it started from, so that runs that do not belong together are never compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Self

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from cluster.errors import ManifestError
from cluster.recorded_run import RecordedRun
from cluster.run_folder.durable import write_atomic
from cluster.run_folder.summary import read_summary
from records.durable import read_text
from records.json_numbers import finite

ByPhase = Mapping[int, Mapping[str, Mapping[str, float]]]
"""A number of each evaluated task, by phase and split."""

_MECHANISM = (
    "mechanism.", "groups.", "replayed", "actor.decisions", "actor.updates", "actor.grad_norm", "actor.ratio.",
    "actor.advantage.mean", "actor.advantage.std", "value.auc",
)  # fmt: skip
"""How the learner's numbers begin that say how a method works and how much it learned from, not how well."""


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class RunRecord:
    """One run of a study.

    ``recipe`` is the SHA-256 of all that its result depends on but the start's weights, and ``start`` that of those,
    empty where the arm made them itself. ``outcomes`` has, by phase (0: before RL) and split, the outcome of each
    judged task, the mean where it was played several times; ``templates`` those tasks' templates. ``sampled`` is the
    success of a phase's rollouts, ``mechanism`` the learner's numbers by name and phase; ``seconds`` the wall time,
    None of a run that took more than one start: what a stage that was cut short took is in none of its numbers.
    ``milestones`` and ``sampled_milestones`` are the share of its milestones that an episode reached, in the form of
    ``outcomes`` and of ``sampled``; tasks without milestones have none.
    """

    recipe: str
    start: str
    outcomes: ByPhase
    templates: Mapping[str, str]
    milestones: ByPhase
    sampled: Mapping[int, float]
    sampled_milestones: Mapping[int, float]
    mechanism: Mapping[str, Mapping[int, float]]
    versions: Mapping[str, str | None]
    seconds: float | None

    def __post_init__(self) -> None:
        """Refuse what no run leaves: no evaluation at all, a task of no template, a share beyond 1."""
        if not self.outcomes:
            raise ValueError("outcomes: expected an evaluation, found none")
        splits = [split for values in (self.outcomes, self.milestones) for split in values.values()]
        for task, value in ((task, value) for split in splits for of in split.values() for task, value in of.items()):
            if task not in self.templates:
                raise ValueError(f"templates: expected that of task {task!r}, found none")
            if not 0 <= value <= 1:
                raise ValueError(f"outcomes, milestones: expected shares in [0, 1], found {value} of {task!r}")

    @classmethod
    def of(cls, run: RecordedRun, recipe: str, start: str) -> Self:
        """Return the record of a complete run."""
        summary = read_summary(run.out)
        sampled, mechanism = dict[int, float](), dict[str, dict[int, float]]()
        for phase in summary["phases"]:
            if (rollout := phase["rollout"]) is not None and rollout["success"] is not None:
                sampled[phase["phase"]] = rollout["success"]
            for name, value in phase["losses"].items():
                if name.startswith(_MECHANISM) and value is not None:
                    mechanism.setdefault(name, {})[phase["phase"]] = value
        evaluated = {phase: played for phase in range(run.phases + 1) if (played := run.evaluated(phase))}
        outcomes = {
            phase: {split: run.outcomes(phase, split) for split in sorted({entry.split for entry in played})}
            for phase, played in evaluated.items()
        }
        milestones = {phase: run.milestones(phase) for phase in evaluated}
        reached = {phase: share for phase in sampled if (share := run.sampled_milestones(phase)) is not None}
        templates = {entry.task_id: entry.template for played in evaluated.values() for entry in played}
        in_one = len({entry.start for entry in run.manifest.entries()}) == 1
        return cls(
            recipe, start, outcomes, templates, milestones, sampled, reached, mechanism, summary["versions"],
            summary["seconds"] if in_one else None,
        )  # fmt: skip

    @property
    def phases(self) -> int:
        """Number of the last phase that was evaluated."""
        return max(self.outcomes)

    def outcomes_of(self, phase: int, split: str, template: str = "") -> Mapping[str, float]:
        """Return the outcome of each judged task of a split; ``template`` leaves only that template's tasks."""
        return self._of(self.outcomes, phase, split, template)

    def milestones_of(self, phase: int, split: str, template: str = "") -> Mapping[str, float]:
        """Return the share of its milestones that each judged task reached, likewise."""
        return self._of(self.milestones, phase, split, template)

    def _of(self, values: ByPhase, phase: int, split: str, template: str) -> Mapping[str, float]:
        found = values.get(phase, {}).get(split, {})
        return {task: value for task, value in found.items() if template in ("", self.templates[task])}


def write_record(file: Path, record: RunRecord) -> None:
    """Write a record, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, json.dumps(finite(asdict(record)), sort_keys=True, allow_nan=False, indent=0) + "\n")


def read_record(file: Path) -> RunRecord | None:
    """Return a run's record, None where there is none.

    Raises:
        ManifestError: the file is not what ``write_record`` writes.
    """
    if not file.exists():
        return None
    try:
        return _RECORD.validate_json(read_text(file))
    except (OSError, ValueError) as error:
        why = _first(error) if isinstance(error, ValidationError) else error
        raise ManifestError(
            f"{file}: is no record of a study's run ({why}); remove it, and the run is played again"
        ) from error


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc'])) or 'it'}: {found['msg']}"


_RECORD = TypeAdapter(RunRecord)
