"""A checker of milestones that is trained: from what a milestone says, a page and the actions, whether it is reached.

Owns the judge ``milestone_checker``, its training and its file. A logistic regression over sentences' similarities and
their products (``judges.of_milestones.features``): it is trained in minutes on a CPU from episodes whose milestones
are known by their checks. Invariants: what it says is monotone; its file is JSON of numbers, read against a schema;
the file names the templates that it was trained on, so that nobody measures it on them by mistake.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from judges.kinds import JudgeKind, Judges
from judges.of_milestones.encoder import DEFAULT, encoder_named
from judges.of_milestones.features import FEATURES, Features
from judges.settings import CheckerSettings
from records.deadline import Deadline
from records.durable import read_json, replace_file
from records.episodes import Task, Trajectory
from records.labels import Label, LabelSubject

NAME = "milestone_checker"
FILE_NAME = "milestone_checker.json"
_RIDGE = 1.0
"""Fixed: what keeps the weights of 152 features small; the held-out agreement hardly depends on it."""
_ROUNDS = 25
Floats = npt.NDArray[np.float64]


class CheckerFile(BaseModel):
    """What a trained checker is: its encoder, its weights, and what it was trained on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int
    encoder: str
    features: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    decision_threshold: float
    templates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """An episode whose milestones are known: what they say, and (T + 1, K) whether each is reached."""

    episode: Trajectory
    milestones: tuple[str, ...]
    reached: npt.NDArray[np.bool_]


class MilestoneChecker:
    """Labels episodes by a trained checker."""

    subject = LabelSubject.MILESTONES

    def __init__(self, trained: CheckerFile, features: Features) -> None:
        if trained.features != FEATURES:
            raise ValueError(f"expected a checker of the features {FEATURES}, found {trained.features}; train it anew")
        self.trained = trained
        self._features = features
        self._checksum = hashlib.sha256(trained.model_dump_json().encode()).hexdigest()

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        """Return (T + 1, K) probabilities, which never fall."""
        said = tuple(milestone.description for milestone in task.milestones)
        return Label(
            episode.episode_id,
            self.subject,
            NAME,
            self.trained.encoder,
            self._checksum,
            self.probabilities(episode, said).astype(np.float32),
            decision_threshold=self.trained.decision_threshold,
            descriptions=said,
        )

    def probabilities(self, episode: Trajectory, milestones: Sequence[str]) -> Floats:
        """Return (T + 1, K), each the largest so far."""
        if not milestones:
            return np.zeros((len(episode.steps) + 1, 0))
        inputs = _with_products(self._features.of(episode, milestones))
        scaled = (inputs - np.array(self.trained.means)) / np.array(self.trained.scales)
        return np.asarray(np.maximum.accumulate(_sigmoid(_with_one(scaled) @ np.array(self.trained.weights)), axis=0))


def train_checker(known: Sequence[Known], features: Features) -> CheckerFile:
    """Return a checker trained on ``known``; its threshold is the one by which it is right most often at their ends.

    A milestone teaches up to the state in which it is reached: before it no, in it yes. Raises ``ValueError`` where
    there are none, and where nothing or everything is reached.
    """
    if not any(one.milestones for one in known):
        raise ValueError(f"expected episodes with milestones, found {len(known)} without")
    features.learn((one.episode for one in known), (said for one in known for said in one.milestones))
    inputs, answers = [], []
    for one in known:
        before = np.vstack([np.zeros((1, len(one.milestones)), dtype=np.bool_), one.reached[:-1]])
        states = _with_products(features.of(one.episode, one.milestones))
        inputs.append(states[~before])
        answers.append(one.reached[~before])
    x, y = np.concatenate(inputs), np.concatenate(answers).astype(np.float64)
    if not 0 < y.sum() < len(y):
        raise ValueError(f"expected milestones that are reached and some that are not, found {y.sum():g} of {len(y)}")
    means, scales = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6)
    weights = _fitted(_with_one((x - means) / scales), y)
    trained = CheckerFile(
        version=1,
        encoder=features.encoder.name,
        features=FEATURES,
        means=tuple(means.tolist()),
        scales=tuple(scales.tolist()),
        weights=tuple(weights.tolist()),
        decision_threshold=0.5,
        templates=tuple(sorted({one.episode.template for one in known})),
    )
    checker = MilestoneChecker(trained, features)
    ends = [(checker.probabilities(one.episode, one.milestones)[-1], one.reached[-1]) for one in known]
    return trained.model_copy(update={"decision_threshold": _best_threshold(ends)})


def save_checker(trained: CheckerFile, folder: Path) -> Path:
    """Write a checker durably into ``folder`` and return its file."""
    path = folder / FILE_NAME
    replace_file(path, (trained.model_dump_json(indent=1) + "\n").encode())
    return path


def load_checker(folder: Path) -> MilestoneChecker:
    """Return the checker in ``folder``; raise ``ValueError`` where there is none that can be read."""
    path = folder / FILE_NAME
    try:
        trained = CheckerFile.model_validate(read_json(path), strict=False)
        if trained.encoder != DEFAULT:  # what a file names is not fetched, nor run
            raise ValueError(f"its encoder is {trained.encoder!r:.80}, expected {DEFAULT}")
    except (OSError, ValueError, ValidationError) as error:
        raise ValueError(f"{path}: expected a checker that `waymark milestones train` made: {error}") from error
    return MilestoneChecker(trained, Features(encoder_named(trained.encoder)))


def _fitted(x: Floats, y: Floats) -> Floats:
    """Return the weights of a ridge logistic regression by Newton's steps; the last column is of ones."""
    weights = np.zeros(x.shape[1])
    ridge = np.full(x.shape[1], _RIDGE)
    ridge[-1] = 1e-6
    for _ in range(_ROUNDS):
        p = _sigmoid(x @ weights)
        slope = x.T @ (p - y) + ridge * weights
        curvature = (x * (p * (1 - p))[:, None]).T @ x + np.diag(ridge)
        step = np.linalg.solve(curvature, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def _best_threshold(ends: Sequence[tuple[Floats, npt.NDArray[np.bool_]]]) -> float:
    said, truth = np.concatenate([one for one, _ in ends]), np.concatenate([other for _, other in ends])
    candidates = np.linspace(0.05, 0.95, 91)
    scores = [((said >= at) == truth).mean() for at in candidates]
    return float(round(candidates[int(np.argmax(scores))], 2))


def _with_products(features: Floats) -> Floats:
    """Return features (..., F) with the products of each pair, (..., F + F (F + 1) / 2)."""
    first, second = np.triu_indices(features.shape[-1])
    return np.concatenate([features, features[..., first] * features[..., second]], axis=-1)


def _with_one(x: Floats) -> Floats:
    return np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1)


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -40, 40))))


def _make(settings: CheckerSettings, judges: Judges) -> MilestoneChecker:
    if not settings.folder:
        raise ValueError(
            "judges.milestone_checker.folder: expected what `waymark milestones train` made, found nothing"
        )
    return load_checker(Path(settings.folder).expanduser())


CHECKER = JudgeKind(settings=CheckerSettings, make=_make)
"""The judge ``milestone_checker``."""
