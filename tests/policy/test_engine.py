"""The engine gives what plain generation, one request at a time, would give."""

from __future__ import annotations

import random

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedModel,
    Qwen2Config,
)

from policy.client import RequestRefused, Sampling
from policy.engine import GenerationEngine, GenerationRequest, GenerationResult

VOCAB = 97
STOP = 5
SHAPE = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.25,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": STOP,
}
CONFIGS = {
    "gemma3": Gemma3TextConfig(**SHAPE, head_dim=8, layer_types=["full_attention"] * 4),
    "gemma3 with a window": Gemma3TextConfig(
        **SHAPE, head_dim=8, sliding_window=16, layer_types=["sliding_attention", "full_attention"] * 2
    ),
    "llama": LlamaConfig(**SHAPE),
    "qwen2": Qwen2Config(**SHAPE),
    "mistral with a window": MistralConfig(**SHAPE, sliding_window=16),
}


def build(config, attention: str = "sdpa") -> PreTrainedModel:  # type: ignore[no-untyped-def]
    torch.manual_seed(3)
    return AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval()


@pytest.fixture(scope="module", params=CONFIGS)
def model(request: pytest.FixtureRequest) -> PreTrainedModel:
    """A small model with random weights."""
    return build(CONFIGS[request.param])


@pytest.fixture(scope="module")
def llama() -> PreTrainedModel:
    """One of them, where the architecture does not matter."""
    return build(CONFIGS["llama"])


def prompts(count: int, seed: int = 0, longest: int = 60) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(6, VOCAB) for _ in range(rng.randint(1, longest))] for _ in range(count)]


@torch.inference_mode()
def plain(model: PreTrainedModel, prompt: list[int], new_tokens: int) -> tuple[list[int], list[float]]:
    """Greedy decoding without any cache: the whole sequence again for every token."""
    ids, logprobs = list(prompt), []
    for _ in range(new_tokens):
        distribution = torch.log_softmax(model(torch.tensor([ids]), use_cache=False).logits[0, -1], dim=-1)
        token = int(distribution.argmax())
        ids.append(token)
        logprobs.append(float(distribution[token]))
        if token == STOP:
            break
    return ids[len(prompt) :], logprobs


def drain(engine: GenerationEngine) -> dict[int, GenerationResult]:
    results: dict[int, GenerationResult] = {}
    while engine.waiting or engine.running:
        results |= {result.request_id: result for result in engine.step()}
    return results


def ask(number: int, prompt: list[int], **sampling: float) -> GenerationRequest:
    return GenerationRequest(number, prompt, Sampling(**{"temperature": 0.0, "max_new_tokens": 20, **sampling}))


@pytest.mark.parametrize("max_prefill_tokens", [1, 100, 10_000])
def test_greedy_replies_equal_plain_generation(model: PreTrainedModel, max_prefill_tokens: int) -> None:
    engine = GenerationEngine(model, [STOP], max_batch=5, max_prefill_tokens=max_prefill_tokens)
    requests = [ask(i, prompt, max_new_tokens=8 + 3 * i) for i, prompt in enumerate(prompts(9))]
    for request in requests:
        engine.submit(request)
    results = drain(engine)
    for request in requests:
        ids, logprobs = plain(model, list(request.prompt_ids), request.sampling.max_new_tokens)
        result = results[request.request_id]
        assert list(result.action_ids) == ids
        assert result.logprobs == pytest.approx(logprobs, abs=1e-4)
        assert result.finish_reason == ("stop" if ids[-1] == STOP else "length")


def test_eager_attention_gives_the_same() -> None:
    model = build(CONFIGS["gemma3 with a window"], "eager")
    engine = GenerationEngine(model, [STOP])
    for i, prompt in enumerate(prompts(4)):
        engine.submit(ask(i, prompt))
    results = drain(engine)
    for i, prompt in enumerate(prompts(4)):
        assert list(results[i].action_ids) == plain(model, prompt, 20)[0]


def test_requests_that_come_and_go_at_any_time_do_not_disturb_each_other(model: PreTrainedModel) -> None:
    engine = GenerationEngine(model, [STOP], max_batch=4)
    rng = random.Random(1)
    waiting = [ask(i, prompt, max_new_tokens=rng.randint(1, 30)) for i, prompt in enumerate(prompts(14, seed=5))]
    requests, results = {request.request_id: request for request in waiting}, {}
    while waiting or engine.waiting or engine.running:
        for _ in range(rng.randint(0, 2)):
            if waiting:
                engine.submit(waiting.pop())
        results |= {result.request_id: result for result in engine.step(admit=rng.random() < 0.7)}
    assert results.keys() == requests.keys()
    for number, request in requests.items():
        ids, logprobs = plain(model, list(request.prompt_ids), request.sampling.max_new_tokens)
        assert list(results[number].action_ids) == ids
        assert results[number].logprobs == pytest.approx(logprobs, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_logprobs_equal_a_teacher_forced_pass(model: PreTrainedModel, temperature: float) -> None:
    engine = GenerationEngine(model, [STOP])
    asked = prompts(6, seed=2)
    for i, prompt in enumerate(asked):
        engine.submit(ask(i, prompt, temperature=temperature, seed=i))
    for number, result in drain(engine).items():
        ids = torch.tensor([[*asked[number], *result.action_ids]])
        with torch.inference_mode():
            logits = model(ids).logits[0, len(asked[number]) - 1 : -1] / (temperature or 1.0)
        expected = torch.log_softmax(logits, -1).gather(1, ids[0, len(asked[number]) :, None])[:, 0]
        assert list(result.logprobs) == pytest.approx(expected.tolist(), abs=1e-4)
        if temperature in (0.0, 1.0):
            assert engine.score(asked[number], result.action_ids) == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_sampled_reply_depends_on_its_seed_and_not_on_its_company(llama: PreTrainedModel) -> None:
    prompt = prompts(1, seed=7)[0]

    def reply(seed: int, company: int) -> tuple[int, ...]:
        engine = GenerationEngine(llama, [STOP])
        for i, other in enumerate(prompts(company, seed=11)):
            engine.submit(ask(100 + i, other, temperature=1.0, seed=i))
        engine.step()
        engine.submit(ask(0, prompt, temperature=1.0, seed=seed))
        return drain(engine)[0].action_ids

    assert reply(1, 0) == reply(1, 6) == reply(1, 3)
    assert len({reply(seed, 0) for seed in range(8)}) > 1


def test_batch_invariant_results_are_bit_equal_in_any_order(llama: PreTrainedModel) -> None:
    requests = [ask(i, prompt, temperature=1.0, seed=i) for i, prompt in enumerate(prompts(6))]

    def run(order: list[GenerationRequest]) -> dict[int, GenerationResult]:
        engine = GenerationEngine(llama, [STOP], batch_invariant=True)
        for request in order:
            engine.submit(request)
        return drain(engine)

    assert run(requests) == run(requests[::-1])


def test_a_cancelled_request_leaves_the_others_as_they_were(llama: PreTrainedModel) -> None:
    engine = GenerationEngine(llama, [STOP], max_batch=3)
    asked = prompts(5, seed=9)
    for i, prompt in enumerate(asked):
        engine.submit(ask(i, prompt, max_new_tokens=30))
    results = {result.request_id: result for result in engine.step()}
    assert engine.cancel(0)
    assert engine.cancel(4)
    assert not engine.cancel(99)
    results |= drain(engine)
    assert results.keys() == {1, 2, 3}
    for number, result in results.items():
        assert list(result.action_ids) == plain(llama, asked[number], 30)[0]


@pytest.mark.parametrize(
    ("prompt", "sampling", "message"),
    [
        ([], {}, "empty"),
        ([6] * 500, {}, "500 tokens and 20 new ones exceed the context of 512"),
        ([VOCAB], {}, "is this the model's tokenizer"),
        ([6], {"temperature": -1.0}, "temperature >= 0"),
        ([6], {"max_new_tokens": 0}, "max_new_tokens >= 1"),
    ],
)
def test_what_cannot_be_served_is_refused(
    llama: PreTrainedModel, prompt: list[int], sampling: dict[str, float], message: str
) -> None:
    engine = GenerationEngine(llama, [STOP])
    with pytest.raises(RequestRefused, match=message):
        engine.submit(ask(0, prompt, **sampling))
    assert engine.waiting == 0
