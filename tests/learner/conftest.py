"""A tiny random Gemma3 and hand-made trajectories for the learner's tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from records import failure_codes as codes
from records.episodes import FinalState, Source, Step, Termination, Trajectory
from records.failures import Failure

VOCABULARY = 61


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a random two-layer Gemma3 of width 32."""
    config = Gemma3TextConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        query_pre_attn_scalar=16,
        max_position_embeddings=256,
        sliding_window=256,
        layer_types=["full_attention"] * 2,
        initializer_range=0.1,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=[2],
        pad_token_id=0,
    )
    path = tmp_path_factory.mktemp("model")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        Gemma3ForCausalLM(config).save_pretrained(path)
    return path


def make_trajectory(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    outcome: float | None = 1.0,
    episode_id: str = "e0",
    reached: Sequence[int] | None = None,
    milestone_count: int = 4,
    group: str = "",
    temperature: float = 1.0,
    final: Sequence[int] | None = None,
) -> Trajectory:
    """Make a trajectory from (prompt, action) pairs of token ids; ``final`` is the prompt after the last action."""
    counts = list(reached) if reached is not None else [0] * len(pairs) + [milestone_count]
    vectors = [tuple(k < count for k in range(milestone_count)) for count in counts]
    steps = tuple(
        Step(
            index=t,
            url="",
            observation="",
            prompt_ids=np.asarray(prompt, dtype=np.int32),
            action_ids=np.asarray(action, dtype=np.int32),
            logprobs=np.zeros(len(action), dtype=np.float32),
            policy_version=0,
            temperature=temperature,
            action_text=" ".join(map(str, action)),
            milestones=vectors[t],
        )
        for t, (prompt, action) in enumerate(pairs)
    )
    return Trajectory(
        episode_id=episode_id,
        task_id="t",
        template="shop.t",
        site="shop",
        split="train",
        intent="",
        source=Source.ROLLOUT,
        phase=0,
        seed=0,
        steps=steps,
        termination=Termination.EXIT if outcome is not None else None,
        answer=None,
        outcome=outcome,
        failure=None if outcome is not None else Failure(codes.BROWSER_CRASHED),
        final_milestones=vectors[-1],
        group=group,
        final_state=None if final is None else FinalState("", "", np.asarray(final, dtype=np.int32)),
    )


@pytest.fixture
def trajectory() -> Callable[..., Trajectory]:
    """Return a maker of trajectories from (prompt, action) pairs of token ids."""
    return make_trajectory
