"""Trains an outcome model: a causal language model learns to say yes or no to recorded episodes.

Owns ``train_outcome_model``. Invariants: templates, not episodes, are split into what trains, what calibrates and what
is held out, site by site, so that the report is about tasks of kinds that the model has never seen; the folder appears
whole or not at all; the same episodes, settings and machine give the same model. Needs torch, and no Ray.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from analysis.discrimination import Calibration, OutcomeReport, calibrate, report_on
from cluster.errors import RunStopped
from cluster.run_folder.durable import put_folder, require_new, scratch_folder
from cluster.run_folder.policy_folder import write_checksums
from judges.trained.model import OutcomeModel, OutcomeProbe, write_outcome_model
from judges.trained.prompt import OutcomePrompt
from learner.batching import Sample
from learner.clone import clone_actions
from learner.language_model import LanguageModel
from learner.logprobs import score_samples
from learner.optimiser import Compute
from learner.settings import CloneSettings
from policy.models import load_causal_lm, save_policy
from policy.tokenizer import TextTokenizer
from records.episodes import Trajectory

OnUpdate = Callable[[int, float], None]


@dataclass(frozen=True, slots=True)
class OutcomeTraining:
    """How an outcome model is trained.

    ``calibration_share`` and ``held_out_share`` are shares of each site's templates. ``page`` is whether prompts show
    the last page; ``shuffled`` gives training episodes each other's outcomes: both are controls. ``max_tokens`` bounds
    a forward pass.
    """

    updates: int = 300
    batch: int = 16
    learning_rate: float = 5e-4
    max_prompt_tokens: int = 640
    calibration_share: float = 0.15
    held_out_share: float = 0.25
    seed: int = 0
    device: str = "cpu"
    threads: int = 1
    max_tokens: int = 8192
    page: bool = True
    shuffled: bool = False


@dataclass(frozen=True, slots=True)
class Split:
    """Judged episodes by what they are for; no template is in two parts."""

    train: tuple[Trajectory, ...]
    calibration: tuple[Trajectory, ...]
    held_out: tuple[Trajectory, ...]

    @classmethod
    def of(cls, episodes: Sequence[Trajectory], settings: OutcomeTraining) -> Split:
        """Split by template, within each site in an order that the seed draws."""
        part: dict[str, int] = {}
        for site in sorted({episode.site for episode in episodes}):
            mine = sorted({e.template for e in episodes if e.site == site}, key=lambda t: _draw(settings.seed, t))
            held_out = round(len(mine) * settings.held_out_share)
            calibrating = held_out + round(len(mine) * settings.calibration_share)
            part |= {name: 2 if i < held_out else 1 if i < calibrating else 0 for i, name in enumerate(mine)}
        parts: list[list[Trajectory]] = [[], [], []]
        for episode in episodes:
            parts[part[episode.template]].append(episode)
        return cls(*map(tuple, parts))


def train_outcome_model(
    episodes: Sequence[Trajectory], start: Path, out: Path, settings: OutcomeTraining, on_update: OnUpdate
) -> OutcomeReport:
    """Write an outcome model to ``out`` that starts from the policy folder ``start``; return how good it is.

    ``on_update`` is called with the number of updates so far and the loss.

    Raises:
        RecipeError: ``out`` is there already.
        RunStopped: a part has no success or no failure.
        OSError, ValueError: ``start`` is no policy folder that can be used.
    """
    require_new(out)
    torch.set_num_threads(settings.threads)
    split = Split.of(episodes, settings)
    _require_both(split)
    prompt = OutcomePrompt(TextTokenizer.load(start), settings.max_prompt_tokens, page=settings.page)
    yes, no = prompt.answers()
    model = LanguageModel(load_causal_lm(start, device=settings.device))
    compute = Compute(model.device, settings.max_tokens)
    taught = _balanced(_samples(split.train, prompt, yes, no, settings), yes, settings.seed)
    own = CloneSettings(learning_rate=settings.learning_rate, updates=settings.updates, batch_steps=settings.batch)
    clone_actions(
        model, taught, np.arange(len(taught)), own, shuffle="steps",
        generator=np.random.default_rng(settings.seed), compute=compute, on_update=on_update,
    )  # fmt: skip
    found = calibrate(_log_odds(model, split.calibration, prompt, (yes, no), compute), _solved(split.calibration))
    report = report_on(
        found.probabilities(_log_odds(model, split.held_out, prompt, (yes, no), compute)),
        _solved(split.held_out),
        found.threshold,
        sites=[episode.site for episode in split.held_out],
        templates=[episode.template for episode in split.held_out],
    )
    _write(model, start, out, found, (yes, no), settings, _probe(model, prompt, (yes, no), compute))
    return replace(report, trained=len(split.train), calibrated=len(split.calibration))


def _samples(
    episodes: Sequence[Trajectory], prompt: OutcomePrompt, yes: int, no: int, settings: OutcomeTraining
) -> list[Sample]:
    """Return each episode's prompt with the token that its verdict is, or another episode's for the control."""
    solved = _solved(episodes)
    if settings.shuffled:
        solved = np.random.default_rng(settings.seed).permutation(solved)
    return [_sample(prompt, episode, yes if won else no) for episode, won in zip(episodes, solved, strict=True)]


def _sample(prompt: OutcomePrompt, episode: Trajectory, token: int) -> Sample:
    return Sample(prompt.ids(episode), np.asarray([token], dtype=np.int32))


def _balanced(samples: list[Sample], yes: int, seed: int) -> list[Sample]:
    """Return the samples with those of the rarer answer repeated, so that both are there equally often."""
    groups = [[s for s in samples if bool(s.action_ids[0] == yes) is answer] for answer in (True, False)]
    rare, often = sorted(groups, key=len)
    again = np.random.default_rng(seed).choice(len(rare), size=len(often) - len(rare))
    return [*often, *rare, *(rare[i] for i in again)]


def _log_odds(
    model: LanguageModel, episodes: Sequence[Trajectory], prompt: OutcomePrompt, answers: tuple[int, int],
    compute: Compute,
) -> np.ndarray:  # fmt: skip
    """Return log p(yes) - log p(no) of each episode (N,)."""
    samples = [_sample(prompt, episode, token) for episode in episodes for token in answers]
    scores = np.asarray([score[0] for score in score_samples(model, samples, compute)], dtype=np.float64)
    return np.asarray(scores[0::2] - scores[1::2])


def _probe(model: LanguageModel, prompt: OutcomePrompt, answers: tuple[int, int], compute: Compute) -> OutcomeProbe:
    """Return what the trained model says of the fixed prompts, by which a server of it is known."""
    asked = [(np.asarray(ids, dtype=np.int32), token) for ids in prompt.probes() for token in answers]
    samples = [Sample(ids, np.asarray([token], dtype=np.int32)) for ids, token in asked]
    scores = [float(score[0]) for score in score_samples(model, samples, compute)]
    return OutcomeProbe(prompt.probes(), tuple(zip(scores[0::2], scores[1::2], strict=True)))


def _solved(episodes: Sequence[Trajectory]) -> np.ndarray:
    return np.asarray([episode.success for episode in episodes], dtype=np.bool_)


def _require_both(split: Split) -> None:
    for name in ("train", "calibration", "held_out"):
        solved = _solved(getattr(split, name))
        if not 0 < solved.sum() < len(solved):
            raise RunStopped(
                f"the part {name} has {int(solved.sum())} successes among {len(solved)} episodes: expected both "
                "successes and failures; name more runs, or other shares"
            )


def _write(
    model: LanguageModel, start: Path, out: Path, found: Calibration, answers: tuple[int, int],
    settings: OutcomeTraining, probe: OutcomeProbe,
) -> None:  # fmt: skip
    scratch = scratch_folder(out)
    save_policy(model.model, start, scratch)
    reading = OutcomeModel(
        yes=answers[0],
        no=answers[1],
        max_prompt_tokens=settings.max_prompt_tokens,
        page=settings.page,
        temperature=found.temperature,
        bias=found.bias,
        threshold=found.threshold,
        probe=probe,
    )
    write_outcome_model(reading, scratch)
    write_checksums(scratch)
    put_folder(scratch, out)


def _draw(seed: int, template: str) -> str:
    return hashlib.sha256(f"{seed}/{template}".encode()).hexdigest()
