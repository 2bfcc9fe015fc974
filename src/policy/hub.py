"""Where the model lies that ``policy.model`` names: a folder here, or one commit of a model on the Hugging Face hub.

Owns which of the two a name means, the files that make a model, and fetching them. Invariants: what is fetched are
settings, tokenizers and safetensors, never code and never a pickle; nothing is loaded here. Imports no torch.
"""

from __future__ import annotations

import re
from pathlib import Path

from policy.chat_marks import CHAT_FILE
from policy.settings import PolicySettings
from policy.vllm.inside.waymark_model_files import INDEX, OTHER_FORM, WEIGHTS, weight_files

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
CHECKSUMS = "checksums.json"
"""What a policy folder says of its own files."""
_SETTINGS, _TENSORS = (".json", ".jinja"), ".safetensors"
_OF_OTHER_FORM = ("params.json", f"{OTHER_FORM}*")
"""Mistral's own form of the same model, of which vLLM would read its weights in place of the others."""
_NOT_THE_MODELS = (CHAT_FILE, "adapter_config.json", "params.json")
"""Waymark's own, what lets transformers load another model than the folder's, and the other form's settings."""


class ModelUnavailable(ValueError):
    """The hub does not give this model, or not at this revision."""


def names_folder(model: str) -> bool:
    """Return whether ``model`` names a folder: one that is there, or a text that can be no model on the hub."""
    folder = Path(model)
    among_folders = folder.parent != Path() and folder.parent.is_dir()
    return folder.exists() or among_folders or _HUB_NAME.fullmatch(model) is None or model.startswith((".", "~"))


def model_files(folder: Path) -> list[Path]:
    """Return what a model consists of (settings, tokenizer, template, weights), sorted, without what Waymark adds.

    Raises:
        ModelUnavailable: the weights' index cannot be read.
    """
    try:
        weights = weight_files(folder)
    except ValueError as error:
        raise ModelUnavailable(f"policy.model: {error}; download the model again, whole") from error
    indexed = [folder / INDEX] if folder / WEIGHTS not in weights else []
    return sorted(path for path in (*settings_files(folder), *indexed, *weights) if path.is_file())


def settings_files(folder: Path) -> list[Path]:
    """Return what a model consists of besides its weights and their index: what reads text and pictures for it too."""
    files = (path for path in folder.iterdir() if path.suffix in _SETTINGS and path.name not in _NOT_THE_MODELS)
    return sorted(path for path in files if path.is_file() and not path.name.endswith(f"{_TENSORS}.index.json"))


def located_model(settings: PolicySettings) -> tuple[Path, str]:
    """Return the folder with the model's files, and its commit where it comes from the hub (else an empty text).

    A model on the hub is fetched into the user's cache, or found there.

    Raises:
        ModelUnavailable: the hub has no such model or revision, or cannot be reached.
    """
    if names_folder(settings.model):
        return Path(settings.model), ""
    from huggingface_hub import snapshot_download  # only for names on the hub; costs 0.3 s to import
    from huggingface_hub.errors import HfHubHTTPError

    asked = f"policy.model {settings.model}, policy.revision {settings.revision or '(the newest)'}"
    wanted, unwanted = [f"*{kind}" for kind in (*_SETTINGS, _TENSORS)], [*_OF_OTHER_FORM, "*/*"]
    try:
        found = Path(
            snapshot_download(
                settings.model,
                revision=settings.revision or None,
                allow_patterns=wanted,
                ignore_patterns=unwanted,
            )
        )
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise ModelUnavailable(
            f"{asked}: the Hugging Face hub does not give it: {error}; look at the name and the revision, log in where "
            "the model asks for it (hf auth login), or name a folder"
        ) from error
    return found, found.name
