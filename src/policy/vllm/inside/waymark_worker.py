"""What Waymark adds to vLLM's workers: taking weights from a published safetensors file.

Owns ``WorkerExtension``, whose methods vLLM's ``collective_rpc`` calls in each worker of a server. A file is where it
is said to be: at a path, at a URL, or sent by broadcast; then each worker has it in memory. Invariants: it is taken
only if its bytes have the checksum that was published and its tensors are the served model's, or an adapter's for it;
otherwise the model is as it was. vLLM is handed one tensor after another, of which a worker keeps its part. A head that
shares the embedding's weights follows it. A worker that starts removes what dead ones have left in the temporary
folder. It imports torch, safetensors and vLLM, and of Waymark what lies beside it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from vllm.config import set_current_vllm_config
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload
from waymark_broadcast import BrokenOff, Invitation, is_invitation, receive_into
from waymark_files import cache_folder, cached, fetch_url, is_url
from waymark_folders import forget, forget_all, lay_out, sweep
from waymark_model_files import weight_files
from waymark_weights import Opened, Shapes, WeightFile, misfit_of, proven

Tensors = dict[str, torch.Tensor]
_PREFIX = "base_model.model."
_HEAD, _EMBEDDING = "lm_head.weight", "embed_tokens.weight"
_NOT_TEXT = ("vision", "audio")


Answer = dict[str, str | bool]
"""``refused`` says why, or is empty; ``broken_off`` says that a broadcast ended early, for whatever reason."""


class WorkerExtension:
    """Named by ``--worker-extension-cls``; vLLM makes it a base of its worker."""

    vllm_config: Any
    model_config: Any
    model_runner: Any
    device: torch.device
    rank: int

    def waymark_device(self) -> Answer:
        """Return what kind of device this worker has, for whoever makes a group of workers."""
        return {"refused": "", "device": self.device.type}

    def waymark_take_weights(self, place: str, checksum: str) -> Answer:
        """Load the file at ``place`` if its SHA-256 is ``checksum``."""
        return self._answered(self._take, place, checksum)

    def waymark_lay_out_adapter(self, place: str, checksum: str) -> Answer:
        """Lay the adapter in the file at ``place`` out as vLLM loads it, in a ``folder``."""
        return self._answered(self._lay_out, place, checksum)

    def _answered(self, use: Callable[[WeightFile, Opened], Answer], place: str, checksum: str) -> Answer:
        """Return what ``use`` says of the file at ``place``, or why it is not what was published.

        What goes wrong in ``use`` is raised: the model may be half of it by then.
        """
        with ExitStack() as opened:
            try:
                content = opened.enter_context(self._opened(place, checksum))
                weights = opened.enter_context(proven(content, checksum))
            except BrokenOff as broken:
                return {"refused": str(broken), "broken_off": True}
            except OSError as error:
                return {"refused": f"cannot read {place.partition('?')[0]}: {error.strerror or error}"}
            except ValueError as error:
                return {"refused": str(error)}
            return use(weights, content)

    def _take(self, weights: WeightFile, _: Opened) -> Answer:
        shapes, source = self._shapes(), {name: name for name in weights.shapes}
        # vLLM takes a tied head that the model's files repeat for a head of its own; what is published has it once.
        if absent := [name for name in shapes if name.endswith(_HEAD) and name not in source]:
            repeated = _repeated_heads(Path(self.model_config.model))
            source |= {head: repeated[head] for head in absent if repeated.get(head) in weights.shapes}
        misfit = misfit_of(shapes, {name: weights.shapes[held] for name, held in source.items()})
        if misfit:
            return {"refused": f"what was published does not fit the served model: {misfit}"}
        model = self.model_runner.get_model()
        with torch.inference_mode(), set_current_vllm_config(self.vllm_config):
            if self.device.type == "cpu":
                _pack_experts_again(model)
            initialize_layerwise_reload(model)
            model.load_weights((name, weights.tensor(held)) for name, held in source.items())
            finalize_layerwise_reload(model, self.model_config)
            _refresh_tied_head(model)
        return {"refused": ""}

    def _lay_out(self, weights: WeightFile, content: Opened) -> Answer:
        shape = weights.metadata.get("adapter", "{}")
        misfit = _adapter_misfit(self._shapes(), json.loads(shape), weights.shapes)
        if misfit:
            return {"refused": f"what was published does not fit the served model: {misfit}"}

        def write(folder: Path) -> None:
            (folder / "adapter_config.json").write_text(shape, encoding="utf-8")
            content.seek(0)
            with (folder / "adapter_model.safetensors").open("xb") as copy:
                shutil.copyfileobj(content, copy)

        forget_all()  # whoever asked for an earlier one has given up
        try:
            return {"refused": "", "folder": str(lay_out(write))}
        except OSError as error:  # the model is as it was
            return {"refused": f"cannot lay an adapter out: {error.strerror or error}"}

    def waymark_forget_folders(self, folders: list[str]) -> Answer:
        """Remove those of ``folders`` that this worker's ``waymark_lay_out_adapter`` made: vLLM is done with them."""
        forget(map(Path, folders))
        return {"refused": ""}

    def _shapes(self) -> Shapes:
        """Return names and shapes of what must be published; a tied head that the files repeat is not."""
        shapes = _own_shapes(Path(self.model_config.model))
        if getattr(self.model_config.hf_text_config, "tie_word_embeddings", False):
            shapes = {name: shape for name, shape in shapes.items() if not name.endswith(_HEAD)}
        return shapes

    def _opened(self, place: str, checksum: str) -> Opened:
        """Return the file at ``place``, open, which is not proven yet; ``checksum`` names one that is fetched.

        Raises:
            OSError, ValueError: there is none that can be read.
            BrokenOff: it was sent by broadcast, and not to its end.
        """
        if is_url(place):
            return cached(cache_folder("by-url"), checksum, lambda target: fetch_url(place, target)).open("rb")
        if not is_invitation(place):
            return Path(place).open("rb")
        invitation = Invitation.read(place)
        on = self.device if invitation.backend == "nccl" else torch.device("cpu")
        with ExitStack() as unless_whole:
            content = unless_whole.enter_context(os.fdopen(os.memfd_create("waymark-weights"), "w+b"))
            receive_into(content, invitation, on, self.rank)
            unless_whole.pop_all()
        return content


def _own_shapes(folder: Path) -> Shapes:
    """Return names and shapes of the tensors that the model was started from; empty where it has no files here."""
    shapes: Shapes = {}
    for file in weight_files(folder):
        with safe_open(str(file), "pt") as tensors:
            for name in list(tensors.keys()):
                shapes[name] = tuple(tensors.get_slice(name).get_shape())
    return shapes


@cache
def _repeated_heads(folder: Path) -> dict[str, str]:
    """Return heads of the model's files that have the very numbers of an embedding, with that embedding's name."""
    tensors: Tensors = {}
    for file in weight_files(folder):
        with safe_open(str(file), "pt") as content:
            wanted = [name for name in content.keys() if name.endswith((_HEAD, _EMBEDDING))]  # noqa: SIM118
            tensors |= {name: content.get_tensor(name) for name in wanted}
    heads = [name for name in tensors if name.endswith(_HEAD)]
    return {
        head: name
        for head in heads
        for name, embedding in tensors.items()
        if name.endswith(_EMBEDDING) and torch.equal(embedding, tensors[head])
    }


def _adapter_misfit(own: Shapes, shape: dict[str, Any], given: Shapes) -> str:
    """Return what keeps ``given`` from being an adapter of this shape for the model; empty where nothing does.

    Layers are compared by their names within the decoder: what stands before differs between files and models.
    """
    rank, wanted = shape.get("r"), Shapes()
    layers = {_within(name): sides for name, sides in own.items() if not any(word in name for word in _NOT_TEXT)}
    for module in shape.get("target_modules", []):
        sides = layers.get(f"{_within(module)}.weight")
        if own and sides is None:
            return f"the model has no {module}"
        for part, expected in (("A", sides and (rank, sides[1])), ("B", sides and (sides[0], rank))):
            name = f"{_PREFIX}{module}.lora_{part}.weight"
            if name not in given or expected not in (None, given[name]):
                return f"{name} is missing or of another shape"
            wanted[name] = given[name]
    unknown = sorted(set(given) - set(wanted))
    return f"unknown {unknown[:3]}" if unknown or not wanted else ""


def _within(name: str) -> str:
    return name[max(name.find("layers."), 0) :]


def _refresh_tied_head(model: torch.nn.Module) -> None:
    """Let a head make its packed copy of the embedding's weights again: on a CPU it keeps one, which would be stale."""
    for name, module in model.named_modules():
        if name.rsplit(".", 1)[-1] == "lm_head" and getattr(module, "quant_method", None) is not None:
            module.quant_method.process_weights_after_loading(module)


def _pack_experts_again(model: torch.nn.Module) -> None:
    """Let experts be packed as when they were first loaded: on a CPU vLLM would take new ones for packed already."""
    for _, module in model.named_modules():
        method: Any = getattr(module, "quant_method", None)
        if getattr(method, "moe_kernel", None) is not None:
            method.moe_kernel = None


# vLLM imports this module in each of its workers when that starts, and has no other hook there.
sweep()
