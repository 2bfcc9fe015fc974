"""The policy that a run starts from and the devices that it is computed on, looked at before anything is loaded.

Owns ``check_start`` and ``check_devices``. Files are looked for and not read, and no GPU is touched.
Imports neither torch nor Ray.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cluster.preflight.machine import Machine
from cluster.recipe.recipe import Recipe
from records.checks import Check, Status

_NEEDED = ("config.json", "tokenizer.json", "*.safetensors")
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def check_start(recipe: Recipe) -> list[Check]:
    """The policy that the recipe names is there; none is named where the run makes one."""
    if recipe.policy.model != "tiny":
        return [_model(recipe.policy.model)]
    if not recipe.warm_start.checkpoint or recipe.run.from_scratch:
        return []
    advice = "name a folder that Waymark exported, or leave it empty to clone"
    return [_folder("warm_start.checkpoint", recipe.checkpoint_path, (*_NEEDED, "checksums.json"), advice)]


def check_devices(recipe: Recipe, machine: Machine) -> list[Check]:
    """The devices that the recipe names are on this machine; on a cluster other machines have them."""
    if recipe.run.resources.address:
        return []
    devices = {"policy.device": recipe.policy.device, "learner.device": recipe.learner.device}
    return [_device(name, device, machine) for name, device in devices.items() if device != "cpu"]


def _model(model: str) -> Check:
    """Look at a policy folder, or at what can only be a model's name on the hub."""
    folder = Path(model)
    among_folders = folder.parent != Path() and folder.parent.is_dir()
    if folder.exists() or among_folders or _HUB_NAME.fullmatch(model) is None or model.startswith((".", "~")):
        advice = "name a folder with these files, a model on the Hugging Face hub, or tiny"
        return _folder("policy.model", folder, _NEEDED, advice)
    found = f"{model} is no folder here, so it is taken for a model on the Hugging Face hub"
    return Check("policy.model", Status.WARN, found, "the hub is asked when the run starts")


def _folder(name: str, folder: Path, needed: tuple[str, ...], advice: str) -> Check:
    if not folder.is_dir():
        return Check(name, Status.FAIL, f"{folder} is not a folder", advice)
    missing = [pattern for pattern in needed if not any(path.is_file() for path in folder.glob(pattern))]
    if missing:
        return Check(name, Status.FAIL, f"{folder} has no {', '.join(missing)}", advice)
    return Check(name, Status.OK, str(folder))


def _device(name: str, device: str, machine: Machine) -> Check:
    if device == "mps":
        status = Status.OK if sys.platform == "darwin" else Status.FAIL
        return Check(name, status, f"mps, on {sys.platform}", "only macOS has mps: choose cpu or cuda")
    if int(device.partition(":")[2] or 0) < machine.gpus:
        return Check(name, Status.OK, device)
    found = f"{device}, but this machine has {machine.gpus} NVIDIA GPUs that this process may use"
    return Check(name, Status.FAIL, found, "choose cpu, or look at the driver and at CUDA_VISIBLE_DEVICES")
