"""What Waymark adds to vLLM's workers: taking weights from a published safetensors file.

Owns ``WorkerExtension``, whose methods vLLM's ``collective_rpc`` calls. A file is where it is said to be: at a path, at
a URL, or sent by broadcast. Invariants: it is taken only if its bytes
have the checksum that was published and its tensors are the served model's, or an adapter's for it; otherwise the model
is as it was. A head that shares the embedding's weights follows it. It imports torch, safetensors and vLLM, and of
Waymark what lies beside it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load
from vllm.config import set_current_vllm_config
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload
from waymark_broadcast import BrokenOff, Invitation, is_invitation, receive
from waymark_files import NotFetched, cache_folder, cached, fetch_url, is_url

Shapes = dict[str, tuple[int, ...]]
Tensors = dict[str, torch.Tensor]
_PREFIX = "base_model.model."
_HEAD, _EMBEDDING = "lm_head.weight", "embed_tokens.weight"
_NOT_TEXT = ("vision", "audio")


class _Refused(ValueError):
    """A file that is not what was published, or not for this model; nothing was changed."""


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
        try:
            _, tensors = self._verified(place, checksum)
        except _Refused as refused:
            return {"refused": str(refused)}
        except BrokenOff as broken:
            return {"refused": str(broken), "broken_off": True}
        shapes = self._shapes()
        # vLLM takes a tied head that the model's files repeat for a head of its own; what is published has it once.
        if absent := [name for name in shapes if name.endswith(_HEAD) and name not in tensors]:
            repeated = _repeated_heads(Path(self.model_config.model))
            tensors |= {head: tensors[repeated[head]] for head in absent if repeated.get(head) in tensors}
        misfit = _misfit(shapes, tensors)
        if misfit:
            return {"refused": f"what was published does not fit the served model: {misfit}"}
        model = self.model_runner.get_model()
        with torch.inference_mode(), set_current_vllm_config(self.vllm_config):
            initialize_layerwise_reload(model)
            model.load_weights(iter(tensors.items()))
            finalize_layerwise_reload(model, self.model_config)
            _refresh_tied_head(model)
        return {"refused": ""}

    def waymark_lay_out_adapter(self, place: str, checksum: str) -> Answer:
        """Lay the adapter in the file at ``place`` out as vLLM loads it, in a ``folder``."""
        try:
            content, tensors = self._verified(place, checksum)
        except _Refused as refused:
            return {"refused": str(refused)}
        except BrokenOff as broken:
            return {"refused": str(broken), "broken_off": True}
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        shape = header.get("__metadata__", {}).get("adapter", "{}")
        misfit = _adapter_misfit(self._shapes(), json.loads(shape), tensors)
        if misfit:
            return {"refused": f"what was published does not fit the served model: {misfit}"}
        folder = Path(tempfile.mkdtemp(prefix="waymark-adapter-"))
        (folder / "adapter_config.json").write_text(shape, encoding="utf-8")
        (folder / "adapter_model.safetensors").write_bytes(content)
        return {"refused": "", "folder": str(folder)}

    def waymark_forget_folders(self, folders: list[str]) -> Answer:
        """Remove folders that ``waymark_lay_out_adapter`` made: vLLM has read them."""
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        return {"refused": ""}

    def _shapes(self) -> Shapes:
        """Return names and shapes of what must be published; a tied head that the files repeat is not."""
        shapes = _own_shapes(Path(self.model_config.model))
        if getattr(self.model_config.hf_text_config, "tie_word_embeddings", False):
            shapes = {name: shape for name, shape in shapes.items() if not name.endswith(_HEAD)}
        return shapes

    def _verified(self, place: str, checksum: str) -> tuple[bytes, Tensors]:
        """Return a file's bytes and tensors.

        Raises:
            _Refused: it is not the one of this SHA-256.
            BrokenOff: it was sent by broadcast, and not to its end.
        """
        content = self._content(place, checksum)
        found = hashlib.sha256(content).hexdigest()
        if found != checksum:
            raise _Refused(f"expected checksum {checksum[:12]}…, found {found[:12]}…; publish the weights again")
        try:
            return content, load(content)
        except SafetensorError as error:
            raise _Refused(f"what was published is not a safetensors file: {error}") from error

    def _content(self, place: str, checksum: str) -> bytes:
        try:
            if is_invitation(place):
                invitation = Invitation.read(place)
                on = self.device if invitation.backend == "nccl" else torch.device("cpu")
                return receive(invitation, on, self.rank)
            path = Path(place)
            if is_url(place):
                path = cached(cache_folder("by-url"), checksum, lambda target: fetch_url(place, target))
            return path.read_bytes()
        except OSError as error:
            raise _Refused(f"cannot read {place.partition('?')[0]}: {error.strerror or error}") from error
        except (NotFetched, ValueError) as error:
            raise _Refused(str(error)) from error


def _own_shapes(folder: Path) -> Shapes:
    """Return names and shapes of the tensors that the model was started from; empty where it has no files here."""
    shapes: Shapes = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(str(file), "pt") as tensors:
            for name in list(tensors.keys()):
                shapes[name] = tuple(tensors.get_slice(name).get_shape())
    return shapes


@cache
def _repeated_heads(folder: Path) -> dict[str, str]:
    """Return heads of the model's files that have the very numbers of an embedding, with that embedding's name."""
    tensors: Tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
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


def _adapter_misfit(own: Shapes, shape: dict[str, Any], given: Tensors) -> str:
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
            if name not in given or expected not in (None, tuple(given[name].shape)):
                return f"{name} is missing or of another shape"
            wanted[name] = tuple(given[name].shape)
    unknown = sorted(set(given) - set(wanted))
    return f"unknown {unknown[:3]}" if unknown or not wanted else ""


def _within(name: str) -> str:
    return name[max(name.find("layers."), 0) :]


def _misfit(own: Shapes, given: Tensors) -> str:
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
