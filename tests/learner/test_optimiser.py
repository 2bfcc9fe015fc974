"""One update and the learning-rate schedule, worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from learner.batching import Sample
from learner.optimiser import Compute, adamw, learning_rate_factor, update
from learner.settings import ActorSettings, CloneSettings, CriticSettings, LearnerSettings
from learner.trainer import Learner
from records.episodes import Trajectory


def updated(
    gradient: list[float], make: Callable[[nn.Module], torch.optim.Optimizer], max_grad_norm: float
) -> tuple[list[float], float]:
    """Return weights that were (1, -2) before one update along ``gradient``, and the norm that it reports."""
    module = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[1.0, -2.0]]))
    token = np.asarray([3], dtype=np.int32)
    along = torch.tensor([gradient])
    _, norm = update(
        module, make(module), [Sample(token, token)], np.asarray([0]),
        lambda batch, members: (module.weight * along).sum().reshape(1),
        divide_by=1.0, max_grad_norm=max_grad_norm, compute=Compute(torch.device("cpu"), 64),
    )  # fmt: skip
    return module.weight.detach()[0].tolist(), norm


def test_weights_decay_by_themselves() -> None:
    """Without a gradient, each is multiplied by 1 - 0.1 * 0.5."""
    assert updated([0.0, 0.0], lambda module: adamw(module, 0.1, 0.5), 1.0)[0] == pytest.approx([0.95, -1.9])
    assert updated([0.0, 0.0], lambda module: adamw(module, 0.1, 0.0), 1.0)[0] == [1.0, -2.0]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1.0, [1.0 - 0.6, -2.0 - 0.8]),  # (300, 400) has the norm 500
        (50.0, [1.0 - 30.0, -2.0 - 40.0]),
        (1000.0, [1.0 - 300.0, -2.0 - 400.0]),
    ],
)
def test_a_gradient_is_cut_to_its_limit_and_reported_in_full(limit: float, expected: list[float]) -> None:
    weights, norm = updated([300.0, 400.0], lambda module: torch.optim.SGD(module.parameters(), lr=1.0), limit)
    assert weights == pytest.approx(expected, rel=1e-5)
    assert norm == pytest.approx(500.0)


def test_every_training_limits_gradients_and_decays_weights_by_its_own_settings(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """AdamW's step does not depend on a gradient's size, but where it is far below its epsilon, 1e-8: there is none."""
    episodes = [trajectory([([3, 4, 30 + i], [10 + i, 2])], outcome=float(i % 2), episode_id=f"e{i}") for i in range(4)]
    clone = CloneSettings(learning_rate=1e-2, updates=1, warmup_share=0.0, weight_decay=0.0)
    critic = CriticSettings(learning_rate=1e-2, weight_decay=0.0)
    actor = ActorSettings(learning_rate=1e-2, weight_decay=0.0)
    base = LearnerSettings(algorithm="webrl", clone=clone, value=critic, actor=actor)

    def moved(settings: LearnerSettings, part: str) -> float:
        """Return the most by which the part's training changed a weight."""
        learner = Learner(settings, model_dir)
        model = learner.critics["value"].models["value"] if part == "value" else learner.actor.model
        before = [parameter.detach().clone() for parameter in model.parameters()]
        if part == "clone":
            learner.clone(episodes)
        elif part == "value":
            learner.update_critics(episodes, [], 1)
        else:
            learner.update_actor(episodes, [], 1)
        return max(float((p.detach() - b).abs().max()) for p, b in zip(model.parameters(), before, strict=True))

    for part in ("clone", "value", "actor"):
        own = getattr(base, part)
        unlimited, none, decaying = (
            moved(replace(base, **{part: replace(own, **changed)}), part)
            for changed in ({}, {"max_grad_norm": 1e-14}, {"max_grad_norm": 1e-14, "weight_decay": 10.0})
        )
        assert none < 1e-6 < 1e-3 < min(unlimited, decaying)


@pytest.mark.parametrize(
    ("progress", "decay", "expected"),
    [
        (0.0, "cosine", 0.0),
        (0.05, "cosine", 0.5),
        (0.1, "cosine", 1.0),
        (0.55, "cosine", 0.5),
        (1.0, "cosine", 0.0),
        (0.325, "linear", 0.75),
        (1.0, "linear", 0.0),
        (0.7, "constant", 1.0),
    ],
)
def test_schedule(progress: float, decay: str, expected: float) -> None:
    assert learning_rate_factor(progress, 0.1, decay, 0.0) == pytest.approx(expected)


def test_schedule_ends_at_its_final_share() -> None:
    assert learning_rate_factor(1.0, 0.0, "cosine", 0.1) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="decay must be 'cosine' or 'linear' or 'constant', found 'staircase'"):
        CloneSettings(decay="staircase")
