"""A prompt that begins as an earlier one did is read from where it differs, and the reply is the same."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig, PreTrainedModel

from policy.engine import GenerationEngine, GenerationResult
from policy.kept_prompts import NO_HEAD, KeptPrompts
from policy.weights import read_weights, write_weights
from tests.policy.test_engine import CONFIGS, SHAPE, STOP, VOCAB, ask, build, drain, plain


@pytest.fixture(scope="module", params=CONFIGS)
def model(request: pytest.FixtureRequest) -> PreTrainedModel:
    return build(CONFIGS[request.param])


@pytest.fixture(scope="module")
def llama() -> PreTrainedModel:
    return build(CONFIGS["llama"])


def episode(seed: int, steps: int, head: Sequence[int] = ()) -> list[list[int]]:
    """The prompts of an episode's steps: what was said grows, and behind it stands another page each time."""
    rng = random.Random(seed)

    def words(count: int) -> list[int]:
        return [rng.randrange(6, VOCAB) for _ in range(count)]

    said, prompts = [*head, *words(30)], []
    for _ in range(steps):
        prompts.append([*said, *words(rng.randint(5, 60))])
        said = [*said, *words(rng.randint(1, 12))]
    return prompts


def replies(engine: GenerationEngine, prompts: list[list[int]], **sampling: float) -> list[GenerationResult]:
    for number, prompt in enumerate(prompts):
        engine.submit(ask(number, prompt, **sampling))
    done = drain(engine)
    return [done[number] for number in range(len(prompts))]


def assert_plain(model: PreTrainedModel, prompt: list[int], result: GenerationResult) -> None:
    ids, logprobs = plain(model, prompt, 20)
    assert list(result.action_ids) == ids
    assert result.logprobs == pytest.approx(logprobs, abs=1e-4)


def test_the_steps_of_an_episode_are_answered_as_if_nothing_were_kept(model: PreTrainedModel) -> None:
    engine = GenerationEngine(model, [STOP])
    for prompt in episode(1, 6):
        (result,) = replies(engine, [prompt])
        assert_plain(model, prompt, result)
    assert engine.cached_tokens > 5 * 30


def test_episodes_side_by_side_each_find_their_own_head(model: PreTrainedModel) -> None:
    engine = GenerationEngine(model, [STOP], max_batch=4)
    common = list(range(10, 90))
    episodes = [episode(seed, 4, common if seed % 2 else ()) for seed in range(4)]
    for step in range(4):
        prompts = [prompts[step] for prompts in episodes]
        for prompt, result in zip(prompts, replies(engine, prompts), strict=True):
            assert_plain(model, prompt, result)
    assert engine.cached_tokens > 3 * 4 * 30


def test_requests_come_and_go_while_others_run(llama: PreTrainedModel) -> None:
    engine, rng = GenerationEngine(llama, [STOP], max_batch=3, kept_prompts=3), random.Random(4)
    waiting = {10 * seed + i: prompt for seed in range(5) for i, prompt in enumerate(episode(seed, 5))}
    asked, done = dict(waiting), {}
    numbers = sorted(waiting, key=lambda number: (number % 10, rng.random()))
    while numbers or engine.waiting or engine.running:
        if numbers and rng.random() < 0.6:
            engine.submit(ask(numbers[0], waiting.pop(numbers.pop(0))))
        if rng.random() < 0.05:
            cancelled = rng.choice(sorted(set(asked) - set(done)))
            if engine.cancel(cancelled):
                asked.pop(cancelled)
        done |= {result.request_id: result for result in engine.step()}
    assert done.keys() == asked.keys()
    for number, result in done.items():
        assert_plain(llama, asked[number], result)
    assert engine.cached_tokens > 0


def test_the_same_prompt_again_leaves_its_last_token_to_read(llama: PreTrainedModel) -> None:
    engine, prompt = GenerationEngine(llama, [STOP]), episode(1, 1)[0]
    for _ in range(3):
        assert_plain(llama, prompt, replies(engine, [prompt])[0])
    assert engine.cached_tokens == 2 * (len(prompt) - 1)


def test_nothing_is_kept_across_weights(llama: PreTrainedModel, tmp_path_factory: pytest.TempPathFactory) -> None:
    own, other = build(CONFIGS["llama"]), build(LlamaConfig(**{**SHAPE, "initializer_range": 0.3}))
    weights = write_weights(other.state_dict(), tmp_path_factory.mktemp("w") / "w", 1)
    engine, prompts = GenerationEngine(own, [STOP]), episode(1, 3)
    replies(engine, prompts[:2])
    before = engine.cached_tokens
    engine.take_weights(read_weights(weights))
    (result,) = replies(engine, prompts[2:])
    assert engine.cached_tokens == before
    assert_plain(other, prompts[2], result)


def test_weights_are_not_taken_while_a_reply_runs(llama: PreTrainedModel) -> None:
    engine = GenerationEngine(llama, [STOP])
    engine.submit(ask(0, [10, 11, 12]))
    engine.step()
    with pytest.raises(RuntimeError, match="1 replies are running"):
        engine.take_weights({})  # type: ignore[arg-type]


def test_where_results_must_not_depend_on_others_every_prompt_is_read_whole(llama: PreTrainedModel) -> None:
    prompts = episode(1, 5)
    invariant = GenerationEngine(llama, [STOP], batch_invariant=True)
    together = replies(invariant, prompts, temperature=1.0)
    assert invariant.cached_tokens == 0
    for number, prompt in reversed(list(enumerate(prompts))):
        engine = GenerationEngine(llama, [STOP], batch_invariant=True)
        engine.submit(ask(number, prompt, temperature=1.0))
        assert drain(engine)[number] == together[number], "bit for bit"


def test_long_and_short_prompts_are_read_apart_where_padding_would_cost_more(
    llama: PreTrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, read = GenerationEngine(llama, [STOP], max_prefill_tokens=10_000), []
    forward = llama.forward

    def noted(*args: object, **options: torch.Tensor) -> object:
        if options["input_ids"].shape[1] > 1:
            read.append(tuple(options["input_ids"].shape))
        return forward(*args, **options)

    monkeypatch.setattr(llama, "forward", noted)
    head = list(range(6, 90)) * 3
    replies(engine, [[*head, 10]])
    replies(
        engine, [[*head, *range(40, 60)], [*head, *range(50, 80)], [*range(20, 97), *range(20, 97), *range(20, 97)]]
    )
    assert read == [(1, 253), (2, 30), (1, 231)]
    read.clear()
    replies(engine, [[*head, 20, 21], list(range(30, 70))])
    assert read == [(2, 40)], "one pass, where a second costs more than its padding"


ids = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@given(st.integers(1, 4), st.lists(ids, max_size=30))
def test_a_head_is_the_longest_that_is_kept_and_rows_stay_within_their_number(
    rows: int, prompts: list[list[int]]
) -> None:
    kept, holds = KeptPrompts(rows), {}
    for prompt in prompts:
        head = kept.head_of(prompt)
        common = [next((i for i, (a, b) in enumerate(zip(p, prompt, strict=False)) if a != b), min(len(p), len(prompt)))
                  for p in holds.values()]  # fmt: skip
        assert head.length == min(max(common, default=0), len(prompt) - 1)
        assert holds.get(head.row, [])[: head.length] == prompt[: head.length]
        place = kept.place(prompt)
        assert place is not None
        assert 0 <= place < rows
        holds[place] = prompt
    kept.clear()
    assert kept.head_of([1, 2]) == NO_HEAD


def test_the_oldest_goes_first_whatever_it_served() -> None:
    kept = KeptPrompts(2)
    assert (kept.place([1, 1]), kept.place([2, 2])) == (0, 1)
    assert kept.head_of([1, 1, 5]).length == 2
    assert kept.place([3, 3]) == 0
    assert kept.head_of([1, 1, 5]) == NO_HEAD
    assert kept.place([2, 2, 5]) == 1, "in the place of its own beginning"
    assert kept.place([4, 4]) == 0
    assert KeptPrompts(0).place([1]) is None


@pytest.mark.parametrize("many", [1, 3, 8])
def test_as_many_rows_as_there_are_episodes_at_once_are_enough(many: int) -> None:
    kept, episodes = KeptPrompts(many), [episode(seed, 6) for seed in range(many)]
    for step in range(6):
        for prompts in episodes:
            head = kept.head_of(prompts[step])
            if step:
                assert head.length >= 30, "the episode's own prompt before is still there"
            kept.place(prompts[step])
