"""What Waymark adds to vLLM's workers: taking weights from a published safetensors file.

Owns ``WorkerExtension``, whose method vLLM's ``collective_rpc`` calls. Invariants: a file is taken only if its bytes
have the checksum that was published and its tensors are the served model's; otherwise the model is as it was. A head
that shares the embedding's weights follows it. It imports torch, safetensors and vLLM, and nothing of Waymark.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load
from vllm.config import set_current_vllm_config
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

Shapes = dict[str, tuple[int, ...]]


class WorkerExtension:
    """Named by ``--worker-extension-cls``; vLLM makes it a base of its worker."""

    vllm_config: Any
    model_config: Any
    model_runner: Any

    def waymark_take_weights(self, path: str, checksum: str) -> dict[str, str]:
        """Load the file at ``path`` if its SHA-256 is ``checksum``; return ``refused``, empty where it was loaded."""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            return {"refused": f"cannot read {path}: {error.strerror}"}
        found = hashlib.sha256(content).hexdigest()
        if found != checksum:
            return {"refused": f"{path}: expected checksum {checksum[:12]}…, found {found[:12]}…; publish them again"}
        try:
            tensors = load(content)
        except SafetensorError as error:
            return {"refused": f"{path} is not a safetensors file: {error}"}
        misfit = _misfit(_own_shapes(Path(self.model_config.model)), tensors)
        if misfit:
            return {"refused": f"{path} does not fit the served model: {misfit}"}
        model = self.model_runner.get_model()
        with torch.inference_mode(), set_current_vllm_config(self.vllm_config):
            initialize_layerwise_reload(model)
            model.load_weights(iter(tensors.items()))
            finalize_layerwise_reload(model, self.model_config)
            _refresh_tied_head(model)
        return {"refused": ""}


def _own_shapes(folder: Path) -> Shapes:
    """Return names and shapes of the tensors that the model was started from; empty where it has no files here."""
    shapes: Shapes = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(str(file), "pt") as tensors:
            for name in list(tensors.keys()):
                shapes[name] = tuple(tensors.get_slice(name).get_shape())
    return shapes


def _misfit(own: Shapes, given: dict[str, torch.Tensor]) -> str:
    """Return what keeps ``given`` from being the model's tensors, each of them; empty where nothing does."""
    if not own:
        return ""
    shapes = {name: tuple(tensor.shape) for name, tensor in given.items()}
    unknown, missing = sorted(set(shapes) - set(own)), sorted(set(own) - set(shapes))
    other = sorted(name for name in set(own) & set(shapes) if own[name] != shapes[name])
    if not (unknown or missing or other):
        return ""
    return f"unknown {unknown[:3]}, missing {missing[:3]}, of another shape {other[:3]}"


def _refresh_tied_head(model: torch.nn.Module) -> None:
    """Let a head make its packed copy of the embedding's weights again: on a CPU it keeps one, which would be stale."""
    for name, module in model.named_modules():
        if name.rsplit(".", 1)[-1] == "lm_head" and getattr(module, "quant_method", None) is not None:
            module.quant_method.process_weights_after_loading(module)
