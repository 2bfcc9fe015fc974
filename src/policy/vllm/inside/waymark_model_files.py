"""Which files of a folder hold its model's weights.

Owns that choice, which is transformers' own: ``model.safetensors``, or else what the index beside it names. It runs in
Waymark and in workers of vLLM, so it imports the standard library only.
"""

from __future__ import annotations

import json
from pathlib import Path

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
OTHER_FORM = "consolidated"
"""How files begin that hold the same weights in Mistral's own form, under other names."""


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of the model in ``folder``, sorted; some may not be there, and a folder has none.

    A folder with neither a single file nor an index has all its safetensors files but those of the other form.

    Raises:
        ValueError: its index cannot be read.
    """
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    try:
        text = (folder / INDEX).read_text(encoding="utf-8")
    except FileNotFoundError:
        return sorted(file for file in folder.glob("*.safetensors") if not file.name.startswith(OTHER_FORM))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{folder / INDEX} cannot be read: {error}") from error
    try:
        names = {str(name) for name in json.loads(text)["weight_map"].values()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{folder / INDEX} cannot be read: {type(error).__name__}: {error}") from error
    return sorted(folder / name for name in names if Path(name).name == name)
