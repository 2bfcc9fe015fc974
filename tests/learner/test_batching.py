"""Batches hold every sample once, and how they are split does not matter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from learner.batching import Sample, collate, endless_batches, epoch_batches, micro_batches
from learner.critics import Critic, predict
from learner.logprobs import action_logprobs, check_output_layer, score_samples, token_logprobs
from learner.losses import squared_regression, value_loss
from learner.optimiser import Compute, update
from learner.policy_terms import PolicyTerms
from policy.models import load_causal_lm

CPU = torch.device("cpu")


def random_samples(count: int, seed: int = 0) -> list[Sample]:
    generator = np.random.default_rng(seed)

    def ids(low: int, high: int) -> np.ndarray:
        return generator.integers(3, 61, int(generator.integers(low, high))).astype(np.int32)

    return [Sample(ids(4, 30), ids(1, 7)) for _ in range(count)]


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 120))
def test_micro_batches_partition_within_the_budget(lengths: list[int], budget: int) -> None:
    groups = micro_batches(lengths, budget)
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[i] for i in group) <= budget


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 9), st.integers(1, 5))
def test_an_epoch_shows_each_sample_once(lengths: list[int], size: int, window: int) -> None:
    batches = epoch_batches(lengths, size, np.random.default_rng(3), window)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert sorted(len(batch) for batch in batches)[1:] == [size] * (len(batches) - 1)
    again = epoch_batches(lengths, size, np.random.default_rng(3), window)
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches]


def test_windows_save_padding() -> None:
    lengths = np.random.default_rng(0).integers(10, 400, 512)

    def padded(window: int) -> int:
        batches = epoch_batches(lengths, 32, np.random.default_rng(1), window)
        return sum(len(batch) * int(lengths[batch].max()) for batch in batches)

    assert padded(4) < 0.75 * padded(1)


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples to train on"):
        next(endless_batches([], 4, np.random.default_rng(0), 1))


def test_collate_by_hand() -> None:
    samples = [Sample(np.array([5, 6, 7], dtype=np.int32), np.array([8, 2], dtype=np.int32))]
    samples.append(Sample(np.array([9], dtype=np.int32), np.array([4], dtype=np.int32)))
    batch = collate(samples, 0, CPU)
    # The last action token is only predicted, never read: 3 + 2 - 1 columns.
    assert batch.input_ids.tolist() == [[5, 6, 7, 8], [9, 0, 0, 0]]
    assert list(zip(batch.rows.tolist(), batch.columns.tolist(), batch.targets.tolist(), strict=True)) == [
        (0, 2, 8),
        (0, 3, 2),
        (1, 0, 4),
    ]
    assert batch.last_prompt.tolist() == [2, 0]


def test_logprobs_are_the_models_own(model_dir: Path) -> None:
    """Padding, slicing before the output layer and batching change nothing against one plain forward pass each."""
    model = load_causal_lm(model_dir)
    check_output_layer(model)
    samples = random_samples(7)
    scores = score_samples(model, samples, pad_id=0, max_tokens=64)
    for sample, score in zip(samples, scores, strict=True):
        ids = torch.from_numpy(np.concatenate([sample.prompt_ids, sample.action_ids]).astype(np.int64))[None]
        with torch.no_grad():
            logprobs = torch.log_softmax(model(input_ids=ids).logits[0], dim=-1)
        start = len(sample.prompt_ids)
        expected = [float(logprobs[start + k - 1, token]) for k, token in enumerate(sample.action_ids)]
        np.testing.assert_allclose(score, expected, atol=2e-5)


def test_an_unknown_output_layer_is_refused(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_causal_lm(model_dir)
    plain = model.forward

    def scaled(*args: object, **kwargs: object) -> object:
        output = plain(*args, **kwargs)
        output.logits = output.logits * 0.5
        return output

    monkeypatch.setattr(model, "forward", scaled)
    with pytest.raises(ValueError, match="teach learner.logprobs"):
        check_output_layer(model)


def test_action_logprobs_sum_over_tokens(model_dir: Path) -> None:
    model = load_causal_lm(model_dir)
    batch = collate(random_samples(5), 0, CPU)
    tokens = token_logprobs(model, batch).detach().numpy()
    expected = [tokens[batch.rows.numpy() == row].sum() for row in range(5)]
    np.testing.assert_allclose(action_logprobs(model, batch).detach().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("max_tokens", [1, 60, 200])
def test_the_split_does_not_change_the_policy_gradient(model_dir: Path, max_tokens: int) -> None:
    samples = random_samples(12)
    advantages = torch.linspace(-1, 1, 12)

    def gradients(tokens: int) -> list[torch.Tensor]:
        model = load_causal_lm(model_dir)

        def loss(batch: object, members: np.ndarray) -> torch.Tensor:
            at = torch.from_numpy(members)
            terms = PolicyTerms(
                action_logprobs(model, batch), -3 * torch.ones(len(at)), advantages[at], torch.ones(1), 0.5
            )
            return squared_regression(terms)

        frozen = torch.optim.SGD(model.parameters(), lr=0.0)
        update(
            model, frozen, samples, np.arange(12), loss,
            divide_by=12.0, max_grad_norm=1e9, compute=Compute(CPU, 0, tokens),
        )  # fmt: skip
        return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]

    whole, split = gradients(10_000), gradients(max_tokens)
    scale = max(float(gradient.abs().max()) for gradient in whole)
    for a, b in zip(whole, split, strict=True):
        torch.testing.assert_close(a / scale, b / scale, rtol=0, atol=1e-6)


def test_the_split_does_not_change_the_critics_gradient(model_dir: Path) -> None:
    samples = random_samples(9)
    targets = (torch.arange(9) % 2).float()

    def gradients(tokens: int) -> list[torch.Tensor]:
        critic = Critic.from_actor(load_causal_lm(model_dir), seed=1)
        torch.nn.init.constant_(critic.head[2].weight, 0.1)

        def loss(batch: object, members: np.ndarray) -> torch.Tensor:
            return value_loss(critic(batch), targets[torch.from_numpy(members)])

        frozen = torch.optim.SGD(critic.parameters(), lr=0.0)
        update(
            critic, frozen, samples, np.arange(9), loss,
            divide_by=9.0, max_grad_norm=1e9, compute=Compute(CPU, 0, tokens),
        )  # fmt: skip
        return [parameter.grad for parameter in critic.parameters() if parameter.grad is not None]

    whole, split = gradients(10_000), gradients(40)
    scale = max(float(gradient.abs().max()) for gradient in whole)
    assert scale > 0
    for a, b in zip(whole, split, strict=True):
        torch.testing.assert_close(a / scale, b / scale, rtol=0, atol=1e-6)


def test_a_fresh_critic_says_one_half(model_dir: Path) -> None:
    critic = Critic.from_actor(load_causal_lm(model_dir), seed=0)
    answers = predict(critic, random_samples(6), Compute(CPU, 0, 50))
    assert answers.tolist() == [0.5] * 6


def test_a_critic_reads_the_last_prompt_token_whatever_the_padding(model_dir: Path) -> None:
    critic = Critic.from_actor(load_causal_lm(model_dir), seed=0)
    torch.nn.init.normal_(critic.head[2].weight, generator=torch.Generator().manual_seed(0))
    samples = random_samples(6)
    together = predict(critic, samples, Compute(CPU, 0, 10_000))
    alone = [float(predict(critic, [sample], Compute(CPU, 0, 10_000))[0]) for sample in samples]
    assert np.ptp(together) > 1e-3
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_a_gradient_that_is_not_finite_stops_the_run(model_dir: Path) -> None:
    model = load_causal_lm(model_dir)
    before = [parameter.clone() for parameter in model.parameters()]
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    with pytest.raises(FloatingPointError, match="lower the learning rate"):
        update(
            model, optimiser, random_samples(2), np.arange(2), lambda batch, _: action_logprobs(model, batch) * 1e39,
            divide_by=1.0, max_grad_norm=1.0, compute=Compute(CPU, 0, 100),
        )  # fmt: skip
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
