"""Log-probabilities of prompts and actions against the model's own, one position at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from learner.batching import Sample, collate
from learner.logprobs import action_and_prompt_logprobs, action_logprobs
from policy.models import load_causal_lm


def test_prompt_and_action_add_up_to_the_whole_sequence(model_dir: Path) -> None:
    model = load_causal_lm(model_dir)
    samples = [
        Sample(np.asarray([1, 9, 30, 8], dtype=np.int32), np.asarray([7, 2], dtype=np.int32)),
        Sample(np.asarray([1, 5], dtype=np.int32), np.asarray([11, 12, 2], dtype=np.int32)),
    ]
    batch = collate(samples, 0, torch.device("cpu"))
    with torch.no_grad():
        actions, prompts = action_and_prompt_logprobs(model, batch)
        assert torch.allclose(actions, action_logprobs(model, batch), atol=1e-6)
        for i, sample in enumerate(samples):
            ids = torch.tensor([[*sample.prompt_ids, *sample.action_ids]], dtype=torch.long)
            scores = torch.log_softmax(model(input_ids=ids).logits[0, :-1], dim=-1)
            every = scores.gather(1, ids[0, 1:, None]).squeeze(1)
            cut = len(sample.prompt_ids) - 1
            assert torch.allclose(prompts[i], every[:cut].sum(), atol=1e-5)
            assert torch.allclose(actions[i], every[cut:].sum(), atol=1e-5)
