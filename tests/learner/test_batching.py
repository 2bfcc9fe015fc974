"""Batches hold every sample once, and how they are split does not matter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from learner.attention import Segments, attend
from learner.batching import Sample, collate, drawn_episodes, endless_batches, epoch_batches, micro_batches
from learner.critics import Critic, predict
from learner.language_model import LanguageModel
from learner.logprobs import action_logprobs, check_reading, score_samples, token_logprobs
from learner.losses import squared_regression, value_loss
from learner.optimiser import Compute, update
from learner.policy_terms import PolicyTerms
from policy.models import load_causal_lm

CPU = torch.device("cpu")


TOKENS = st.lists(st.integers(3, 5), min_size=1, max_size=8)
SAMPLES = st.lists(st.builds(lambda prompt, action: sample(prompt, action), TOKENS, TOKENS | st.just([])), max_size=20)


def sample(prompt: Sequence[int], action: Sequence[int]) -> Sample:
    return Sample(np.asarray(prompt, dtype=np.int32), np.asarray(action, dtype=np.int32))


def random_samples(count: int, seed: int = 0) -> list[Sample]:
    generator = np.random.default_rng(seed)

    def ids(low: int, high: int) -> np.ndarray:
        return generator.integers(3, 61, int(generator.integers(low, high))).astype(np.int32)

    return [Sample(ids(4, 30), ids(1, 7)) for _ in range(count)]


def read(samples: Sequence[Sample]) -> list[list[int]]:
    return [sample.read_ids.tolist() for sample in samples]


def steps_of_an_episode(count: int) -> list[Sample]:
    """Steps whose prompts are a task, the actions before and a page: each begins as the next does."""
    generator = np.random.default_rng(5)
    history = generator.integers(3, 61, 9).tolist()
    steps = []
    for _ in range(count):
        page, action = generator.integers(3, 61, 12).tolist(), generator.integers(3, 61, 4).tolist()
        steps.append(sample([*history, *page], action))
        history += action
    return steps


@given(SAMPLES, st.integers(1, 120))
def test_micro_batches_partition_within_the_budget(samples: list[Sample], budget: int) -> None:
    groups = micro_batches(samples, budget)
    assert [i for group in groups for i in group] == list(range(len(samples)))
    for group in groups:
        assert len(group) == 1 or collate([samples[i] for i in group], CPU).input_ids.shape[1] <= budget


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 9), st.sampled_from(["steps", "episodes"]))
def test_an_epoch_shows_each_sample_once(episodes: list[int], size: int, shuffle: str) -> None:
    numbers = np.asarray(episodes)
    batches = epoch_batches(numbers, size, np.random.default_rng(3), shuffle)
    assert sorted(i for batch in batches for i in batch) == list(range(len(episodes)))
    assert [len(batch) for batch in batches][:-1] == [size] * (len(batches) - 1)
    again = epoch_batches(numbers, size, np.random.default_rng(3), shuffle)
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches]


def test_a_shuffle_of_episodes_keeps_their_steps_together() -> None:
    """Each of 40 episodes of 8 steps is in one batch of 4 episodes, and which ones go together is drawn."""
    episodes = np.repeat(np.arange(40), 8)
    drawn = [
        [np.unique(episodes[batch]).tolist() for batch in epoch_batches(episodes, 32, np.random.default_rng(seed), how)]
        for seed, how in ((0, "episodes"), (1, "episodes"), (0, "steps"))
    ]
    assert [len(batch) for batch in drawn[0]] == [4] * 10
    assert drawn[0] != drawn[1]
    assert min(len(batch) for batch in drawn[2]) > 8


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 100), st.integers(0, 3))
def test_episodes_are_drawn_up_to_a_size(sizes: list[int], most: int, seed: int) -> None:
    drawn = drawn_episodes(sizes, most, np.random.default_rng(seed)).tolist()
    total = sum(sizes[i] for i in drawn)
    assert drawn == sorted(set(drawn))
    assert total <= most or len(drawn) == 1
    left = [sizes[i] for i in range(len(sizes)) if i not in drawn]
    assert not left or total + max(left) > most


def test_every_episode_is_drawn_as_often_and_without_a_limit_all_are() -> None:
    generator = np.random.default_rng(0)
    often = np.bincount(np.concatenate([drawn_episodes([5] * 10, 20, generator) for _ in range(500)]))
    assert often.min() > 150
    assert often.sum() == 2000
    before = generator.bit_generator.state
    assert drawn_episodes([5] * 10, 0, generator).tolist() == list(range(10))
    assert generator.bit_generator.state == before


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples to train on"):
        next(endless_batches([], 4, np.random.default_rng(0), 1))


def test_collate_by_hand() -> None:
    """The second sample has the first one's head; the third is the second's prompt; the last shares nothing."""
    batch = collate(
        [sample([5, 6, 7], [8, 2]), sample([5, 6, 9, 4], [1]), sample([5, 6, 9], []), sample([3], [4])], CPU
    )
    # The last action token is only predicted, never read.
    assert batch.input_ids.tolist() == [[5, 6, 7, 8, 9, 4, 3]]
    assert batch.position_ids.tolist() == [[0, 1, 2, 3, 2, 3, 0]]
    assert list(zip(batch.rows.tolist(), batch.at.tolist(), batch.targets.tolist(), strict=True)) == [
        (0, 2, 8),
        (0, 3, 2),
        (1, 5, 1),
        (3, 6, 4),
    ]
    assert batch.last_prompt.tolist() == [2, 5, 4, 6]
    assert batch.paths.tolist() == [0, 1, 2, 3, 0, 1, 4, 5, 0, 1, 4, 6]
    assert (batch.segments.owned, batch.segments.seen) == ([4, 2, 1], [4, 4, 1])
    before, after, rows = (column.tolist() for column in batch.prompt_pairs())
    assert list(zip(rows, before, after, strict=True)) == [
        (0, 0, 1), (0, 1, 2), (1, 0, 1), (1, 1, 4), (1, 4, 5), (2, 0, 1), (2, 1, 4),
    ]  # fmt: skip


@given(SAMPLES.filter(bool))
def test_a_row_holds_every_sample_and_no_shared_head_twice(samples: list[Sample]) -> None:
    batch = collate(samples, CPU)
    tokens, positions = batch.input_ids[0][batch.paths], batch.position_ids[0][batch.paths]
    assert [part.tolist() for part in tokens.split(batch.lengths)] == read(samples)
    assert [part.tolist() for part in positions.split(batch.lengths)] == [list(range(s.length)) for s in samples]
    shared = sum(b.shared_with(a) for a, b in pairwise(samples))
    assert batch.input_ids.shape[1] == sum(s.length for s in samples) - shared
    assert sorted(set(batch.paths.tolist())) == list(range(batch.input_ids.shape[1]))


def test_logprobs_are_the_models_own(model_dir: Path) -> None:
    """Packing, slicing before the output layer and batching change nothing against one plain forward pass each."""
    model = load_causal_lm(model_dir)
    packed = LanguageModel(load_causal_lm(model_dir))
    check_reading(packed)
    samples = [*random_samples(7), *steps_of_an_episode(5)]
    scores = score_samples(packed, samples, Compute(CPU, 64))
    for sample, score in zip(samples, scores, strict=True):
        ids = torch.from_numpy(np.concatenate([sample.prompt_ids, sample.action_ids]).astype(np.int64))[None]
        with torch.no_grad():
            logprobs = torch.log_softmax(model(input_ids=ids).logits[0], dim=-1)
        start = len(sample.prompt_ids)
        expected = [float(logprobs[start + k - 1, token]) for k, token in enumerate(sample.action_ids)]
        np.testing.assert_allclose(score, expected, atol=2e-5)


@pytest.mark.parametrize("asked", [{"softcap": 30.0}, {"s_aux": torch.zeros(1)}, {"segments": None}])
def test_an_unknown_attention_is_refused(asked: dict[str, object]) -> None:
    states = torch.zeros(1, 1, 2, 4)
    arguments: dict[str, object] = {"segments": Segments([2], [2], None, CPU), **asked}
    with pytest.raises(ValueError, match="expected a packed row|not known"):
        attend(torch.nn.Identity(), states, states, states, None, **arguments)  # type: ignore[arg-type]


def test_an_unknown_output_layer_is_refused(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_causal_lm(model_dir)
    plain = model.forward

    def scaled(*args: object, **kwargs: object) -> object:
        output = plain(*args, **kwargs)
        output.logits = output.logits * 0.5
        return output

    monkeypatch.setattr(model, "forward", scaled)
    with pytest.raises(ValueError, match="learner.logprobs its output layer"):
        check_reading(LanguageModel(model))


def test_action_logprobs_sum_over_tokens(model_dir: Path) -> None:
    model = LanguageModel(load_causal_lm(model_dir))
    batch = collate(random_samples(5), CPU)
    tokens = model(token_logprobs, batch).detach().numpy()
    expected = [tokens[batch.rows.numpy() == row].sum() for row in range(5)]
    np.testing.assert_allclose(model(action_logprobs, batch).detach().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("max_tokens", [1, 60, 200])
def test_the_split_does_not_change_the_policy_gradient(model_dir: Path, max_tokens: int) -> None:
    samples = [*random_samples(6), *steps_of_an_episode(6)]
    advantages = torch.linspace(-1, 1, 12)

    def gradients(tokens: int) -> list[torch.Tensor]:
        model = LanguageModel(load_causal_lm(model_dir))

        def loss(batch: object, members: np.ndarray) -> torch.Tensor:
            at = torch.from_numpy(members)
            terms = PolicyTerms(
                model(action_logprobs, batch), -3 * torch.ones(len(at)), advantages[at], torch.ones(1), 0.5
            )
            return squared_regression(terms)

        frozen = torch.optim.SGD(model.parameters(), lr=0.0)
        update(
            model, frozen, samples, np.arange(12), loss,
            divide_by=12.0, max_grad_norm=1e9, compute=Compute(CPU, tokens),
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
        critic = Critic.from_actor(LanguageModel(load_causal_lm(model_dir)), seed=1)
        torch.nn.init.constant_(critic.head[2].weight, 0.1)

        def loss(batch: object, members: np.ndarray) -> torch.Tensor:
            return value_loss(critic(batch), targets[torch.from_numpy(members)])

        frozen = torch.optim.SGD(critic.parameters(), lr=0.0)
        update(
            critic, frozen, samples, np.arange(9), loss,
            divide_by=9.0, max_grad_norm=1e9, compute=Compute(CPU, tokens),
        )  # fmt: skip
        return [parameter.grad for parameter in critic.parameters() if parameter.grad is not None]

    whole, split = gradients(10_000), gradients(40)
    scale = max(float(gradient.abs().max()) for gradient in whole)
    assert scale > 0
    for a, b in zip(whole, split, strict=True):
        torch.testing.assert_close(a / scale, b / scale, rtol=0, atol=1e-6)


def test_a_fresh_critic_says_one_half(model_dir: Path) -> None:
    critic = Critic.from_actor(LanguageModel(load_causal_lm(model_dir)), seed=0)
    (answers,) = predict([critic], random_samples(6), Compute(CPU, 50))
    assert answers.tolist() == [0.5] * 6


def test_a_critic_reads_the_last_prompt_token_whatever_is_beside_it(model_dir: Path) -> None:
    critic = Critic.from_actor(LanguageModel(load_causal_lm(model_dir)), seed=0)
    torch.nn.init.normal_(critic.head[2].weight, generator=torch.Generator().manual_seed(0))
    samples = random_samples(6)
    (together,) = predict([critic], samples, Compute(CPU, 10_000))
    alone = [float(predict([critic], [sample], Compute(CPU, 10_000))[0][0]) for sample in samples]
    assert np.ptp(together) > 1e-3
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_a_gradient_that_is_not_finite_stops_the_run(model_dir: Path) -> None:
    model = LanguageModel(load_causal_lm(model_dir))
    before = [parameter.clone() for parameter in model.parameters()]
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    with pytest.raises(FloatingPointError, match="lower the learning rate"):
        update(
            model, optimiser, random_samples(2), np.arange(2), lambda batch, _: model(action_logprobs, batch) * 1e39,
            divide_by=1.0, max_grad_norm=1.0, compute=Compute(CPU, 100),
        )  # fmt: skip
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
