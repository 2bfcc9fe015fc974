"""Losses of action tokens, and the learner's view of what was sampled, tried with a group-relative clipped ratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from learner import algorithms, losses
from learner.advantages import Advantages
from learner.batching import Sample, collate
from learner.credit import Credit
from learner.language_model import LanguageModel
from learner.losses import TokenLoss
from learner.metrics import Mismatch
from learner.objective import ActorData, Scores, make_objective
from learner.optimiser import Compute
from learner.policy_terms import TokenTerms
from learner.settings import ActorSettings, LearnerSettings
from learner.trainer import Learner
from policy.client import Sampling
from policy.engine import GenerationEngine, GenerationRequest, GenerationResult
from policy.models import load_causal_lm
from records.episodes import Trajectory
from tests.learner.phases import run_phase

CPU = Compute(torch.device("cpu"), 4096)
SAMPLES = [
    Sample(np.array([3, 4, 30], dtype=np.int32), np.array([10, 11, 2], dtype=np.int32), 0.8),
    Sample(np.array([3, 5], dtype=np.int32), np.array([20], dtype=np.int32), 1.0),
    Sample(np.array([6, 7, 8, 9], dtype=np.int32), np.array([21, 2], dtype=np.int32), 0.5),
]


def clipped_ratio(terms: TokenTerms, width: float = 0.2) -> Tensor:
    """-min(ratio A, clip(ratio) A) per token (M,), with the ratio of the policy to the one that sampled."""
    ratio = torch.exp(terms.logprobs - terms.behaviour)
    clipped = ratio.clamp(1 - width, 1 + width)
    return -torch.minimum(ratio * terms.advantages, clipped * terms.advantages)


def by_hand(model_dir: Path, sample: Sample, temperature: float) -> np.ndarray:
    """Token log-probabilities by the model's own forward pass, one action at a time."""
    model = load_causal_lm(model_dir)
    ids = torch.tensor([[*sample.prompt_ids, *sample.action_ids]], dtype=torch.long)
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, len(sample.prompt_ids) - 1 : -1].float()
    targets = torch.from_numpy(sample.action_ids.astype(np.int64))
    chosen: np.ndarray = torch.log_softmax(logits / temperature, dim=-1).gather(1, targets[:, None])[:, 0].numpy()
    return chosen


def test_the_clipped_ratio_by_hand() -> None:
    # ratio 1.5: A = 1 counts 1.2 at most, A = -1 counts in full; ratio 0.5, A = -1: 0.8 at least; ratio 1: A itself.
    ratios = torch.tensor([1.5, 1.5, 0.5, 1.0])
    terms = TokenTerms(ratios.log(), torch.zeros(4), None, torch.tensor([1.0, -1.0, -1.0, 0.3]), torch.zeros(4))
    assert clipped_ratio(terms).tolist() == pytest.approx([-1.2, 1.5, 0.8, -0.3])


def test_scores_are_at_temperature_1_and_as_sampled(model_dir: Path) -> None:
    scores = Scores.under(LanguageModel(load_causal_lm(model_dir)), SAMPLES, CPU)
    for sample, plain, sampled in zip(SAMPLES, scores.plain, scores.sampled, strict=True):
        np.testing.assert_allclose(plain, by_hand(model_dir, sample, 1.0), atol=2e-5)
        np.testing.assert_allclose(sampled, by_hand(model_dir, sample, sample.temperature), atol=2e-5)
    assert np.abs(scores.plain[0] - scores.sampled[0]).max() > 1e-3


@pytest.mark.parametrize("own_tokens", [False, True])
def test_a_token_loss_sees_each_token_in_its_action(model_dir: Path, own_tokens: bool) -> None:
    """Members 2 and 0 in this order: their recorded numbers, references and advantages follow them."""
    model = LanguageModel(load_causal_lm(model_dir))
    seen: list[TokenTerms] = []

    def remember(terms: TokenTerms) -> Tensor:
        seen.append(terms)
        return clipped_ratio(terms)

    tokens = (np.array([1.0, 2.0, 3.0]), np.array([4.0]), np.array([5.0, 6.0])) if own_tokens else None
    data = ActorData(
        samples=SAMPLES,
        episodes=np.arange(3),
        behaviour=[np.array([-1.0, -2.0, -3.0]), np.array([-4.0]), np.array([-5.0, -6.0])],
        fresh=np.ones(3, dtype=np.bool_),
        outcomes=np.ones(3),
        credit=Credit(Advantages(np.array([2.0, 4.0, 5.5]), tokens), np.zeros(3)),
    )
    reference = Scores.under(model, SAMPLES, CPU)
    objective = make_objective(model, data, reference, TokenLoss(lambda _: remember), LearnerSettings(), CPU)
    members = np.array([2, 0])
    found = objective(collate([SAMPLES[i] for i in members], CPU.device), members)
    (terms,) = seen
    assert found.shape == (5,)
    assert terms.rows.tolist() == [0, 0, 1, 1, 1]
    assert terms.behaviour.tolist() == [-5.0, -6.0, -1.0, -2.0, -3.0]
    assert terms.advantages.tolist() == ([5.0, 6.0, 1.0, 2.0, 3.0] if own_tokens else [5.5, 5.5, 2.0, 2.0, 2.0])
    assert terms.reference is not None
    np.testing.assert_allclose(terms.reference.numpy(), terms.logprobs.detach().numpy(), atol=1e-5)
    assert terms.logprobs.requires_grad


def test_a_group_relative_clipped_ratio_learns_as_one_more_row(
    model_dir: Path, trajectory: Callable[..., Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four episodes of a page side by side, half of them solved; the loss is added from outside, by its rows alone."""
    monkeypatch.setitem(algorithms.LOSS_NEEDS, "clipped_ratio", algorithms.LossNeeds())
    monkeypatch.setitem(losses.POLICY_LOSSES, "clipped_ratio", TokenLoss(lambda settings: clipped_ratio))
    settings = LearnerSettings(
        algorithm="awr", advantage="group_relative", policy_loss="clipped_ratio", data="rollouts",
        actor=ActorSettings(learning_rate=1e-3, epochs=4, batch_steps=16),
    )  # fmt: skip
    learner = Learner(settings, model_dir)
    assert not learner.critics

    def rollouts() -> list[Trajectory]:
        actions = [[10, 11, 2], [20, 21, 2]] * 2
        episodes = [
            trajectory([([3, 4, 30 + page], action)], float(action[0] == 10), f"{page}-{i}", group=f"p{page}")
            for page in range(4)
            for i, action in enumerate(actions)
        ]
        scores = learner.score(episodes)
        return [
            replace(episode, steps=tuple(replace(s, logprobs=p) for s, p in zip(episode.steps, score, strict=True)))
            for episode, score in zip(episodes, scores, strict=True)
        ]

    def preference() -> float:
        prompt = np.array([3, 4, 30])
        return float(
            learner.probe(prompt, np.array([10, 11, 2])).sum() - learner.probe(prompt, np.array([20, 21, 2])).sum()
        )

    before = preference()
    first = run_phase(learner, rollouts(), [], phase_index=1).actor
    assert first.mismatch is not None
    assert first.mismatch.max < 1e-4
    run_phase(learner, rollouts(), [], phase_index=2)
    assert preference() > before + 0.2


def test_the_mismatch_counts_the_chosen_tokens() -> None:
    # Gaps 0.5, 0 and 1.0 of the first and the last action; the second was not sampled in this phase.
    learners = [np.array([-1.0, -2.0]), np.array([-9.0]), np.array([-3.0])]
    recorded = [np.array([-1.5, -2.0]), np.array([-1.0]), np.array([-2.0])]
    assert Mismatch.between(learners, recorded, np.array([True, False, True])) == Mismatch(0.5, 1.0, 3, 0.75)
    assert Mismatch.between(learners, recorded, np.zeros(3, dtype=np.bool_)) is None
    either_way = Mismatch.between([np.array([-1.0, -2.0])], [np.array([-1.5, -1.5])], np.array([True]))
    assert either_way == Mismatch(0.5, 0.5, 2, 0.0), "of a whole action they cancel"


def test_a_phase_reports_the_mismatch_with_the_server_that_sampled(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """Replies of the real engine at temperature 0.8 and greedy ones agree; weights moved meanwhile do not."""
    engine = GenerationEngine(load_causal_lm(model_dir), [2])
    temperatures = [0.8, 1.0, 0.0]
    for i, temperature in enumerate(temperatures):
        engine.submit(GenerationRequest(i, (3, 4, 30 + i), Sampling(temperature, max_new_tokens=6, seed=i)))
    replies: dict[int, GenerationResult] = {}
    while engine.waiting or engine.running:
        replies |= {reply.request_id: reply for reply in engine.step()}
    episodes = []
    for i, temperature in enumerate(temperatures):
        pair = ([3, 4, 30 + i], list(replies[i].action_ids))
        made = trajectory([pair], episode_id=f"e{i}", temperature=temperature)
        logprobs = np.asarray(replies[i].logprobs, dtype=np.float32)
        episodes.append(replace(made, steps=(replace(made.steps[0], logprobs=logprobs),)))
    settings = LearnerSettings(algorithm="filtered_bc", actor=ActorSettings(learning_rate=1e-2))

    learner = Learner(settings, model_dir)
    before = run_phase(learner, episodes, [], phase_index=1).actor.mismatch
    after = run_phase(learner, episodes, [], phase_index=2).actor.mismatch
    assert before is not None
    assert after is not None
    assert before.tokens == after.tokens == sum(len(reply.action_ids) for reply in replies.values())
    assert before.max < 1e-4
    assert after.mean > 1e-2
    assert run_phase(Learner(settings, model_dir), [], [], phase_index=1).actor.mismatch is None
