"""A worker of vLLM that can be told to take weights wrongly, each time in one of the ways that stay silent."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load
from vllm.config import set_current_vllm_config
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload
from waymark_worker import WorkerExtension


class ControlExtension(WorkerExtension):
    """``how``: ``stale_head`` (a tied head keeps its packed copy) or ``half`` (half of the tensors are loaded)."""

    def control_take_weights(self, path: str, how: str) -> dict[str, str]:
        """Take the weights at ``path`` wrongly."""
        tensors = sorted(load(Path(path).read_bytes()).items())
        if how == "half":
            tensors = tensors[: len(tensors) // 2]
        model = self.model_runner.get_model()
        with torch.inference_mode(), set_current_vllm_config(self.vllm_config):
            initialize_layerwise_reload(model)
            model.load_weights(iter(tensors))
            finalize_layerwise_reload(model, self.model_config)
        return {"refused": ""}
