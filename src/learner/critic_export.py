"""A trained critic as ONNX, in float32 and with weights of 8 bits, for inference without torch.

Owns the export and the comparison with the critic itself. Invariant: prompts are padded behind their last token, which
a causal model does not see from there, so that no mask is needed and a batch answers as its rows do alone.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from learner.checkpoints import MANIFEST
from learner.critics import Critic
from learner.errors import CheckpointError
from learner.pieces import StoredPart
from policy.models import load_causal_lm
from policy.potential import FILES, INPUTS, OUTPUT
from policy.weights import own_tensors
from records.episodes import FloatArray, IntArray


class PlainCritic(nn.Module):
    """A critic as an ordinary module over padded rows."""

    def __init__(self, critic: Critic) -> None:
        super().__init__()
        self.backbone, self.head = critic.backbone, critic.head

    def forward(self, input_ids: Tensor, last: Tensor) -> Tensor:
        """Return the answers (B,) for prompts (B, N), each read at its token ``last`` (B,)."""
        states = self.backbone(input_ids=input_ids, use_cache=False).last_hidden_state
        chosen = states[torch.arange(states.shape[0]), last]
        return torch.sigmoid(self.head(chosen).squeeze(-1))

    @torch.no_grad()
    def ask(self, prompt: IntArray) -> float:
        """Return the answer for one prompt (P,)."""
        ids = torch.from_numpy(np.asarray(prompt, np.int64))[None]
        return float(self(ids, torch.tensor([ids.shape[1] - 1])))


def load_critic(name: str, model_dir: Path, checkpoint: Path) -> PlainCritic:
    """Return the critic ``name`` of a checkpoint of whole models, on the backbone of the policy folder ``model_dir``.

    Raises:
        CheckpointError: the checkpoint has no such critic, or one of another shape (an adapter).
    """
    model = load_causal_lm(model_dir)
    model.set_attn_implementation("eager")
    critic = Critic(model.base_model, int(model.get_output_embeddings().weight.shape[1]), 0).eval()
    names = list(json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8")))
    stored, own = StoredPart(checkpoint, name, names), own_tensors(critic)
    if stored.shapes != {key: tuple(tensor.shape) for key, tensor in own.items()}:
        raise CheckpointError(f"{checkpoint}: its {name} critic is not a whole model; adapters are not exported")
    with torch.no_grad():
        for key, tensor in own.items():
            stored.read_into(key, tensor)
    return PlainCritic(critic).eval()


def export_onnx(critic: PlainCritic, folder: Path) -> None:
    """Write the critic into ``folder`` in float32 and in 8 bits.

    Raises:
        ImportError: onnx, onnxscript or onnxruntime is not installed.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    whole, prepared = folder / FILES["float32"], folder / ".prepared.onnx"
    dynamic = torch.export.Dim.DYNAMIC
    with errors_alone():
        program = torch.onnx.export(
            critic,
            (torch.ones((2, 5), dtype=torch.int64), torch.tensor([4, 2])),
            dynamo=True,
            input_names=list(INPUTS),
            output_names=[OUTPUT],
            dynamic_shapes={"input_ids": {0: dynamic, 1: dynamic}, "last": {0: dynamic}},
            verbose=False,
        )
    assert program is not None
    program.save(str(whole), external_data=False)
    quant_pre_process(str(whole), str(prepared), skip_symbolic_shape=True)
    # Processors without instructions for it add products of 8 bits in 16: seven bits of weight never overflow there.
    quantize_dynamic(prepared, folder / FILES["int8"], weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
    prepared.unlink()


@contextmanager
def errors_alone() -> Iterator[None]:
    """Let torch's exporter say errors alone in here: whether an export is right, its answers say.

    It warns of packages that no critic needs, and of what torch itself will have to change.
    """
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        exporter.setLevel(level)


def answers_of(critic: PlainCritic, prompts: Sequence[IntArray]) -> FloatArray:
    """Return the critic's own answers (B,)."""
    return np.array([critic.ask(prompt) for prompt in prompts], np.float32)
