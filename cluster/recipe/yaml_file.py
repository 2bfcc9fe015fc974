"""Files that people write for Waymark in YAML: recipes and studies.

Owns ``read_yaml_file``. Invariant: whatever lies at the path, reading ends at once, with text or with a sentence.
"""

from __future__ import annotations

from pathlib import Path

from cluster.errors import RecipeError
from records.durable import NotAFile, open_file

_MOST_BYTES = 2**20
"""A hundred times what anybody has written yet."""


def read_yaml_file(path: Path, what: str) -> str:
    """Return the text of a file that holds a ``what``, such as a recipe, with its line ends as they are.

    Raises:
        RecipeError: there is none, it is a pipe, a device or a folder, it is no text, or nobody wrote so much.
    """
    try:
        with open_file(path) as file:
            content = file.read(_MOST_BYTES + 1)
    except NotAFile as error:
        raise RecipeError(f"{error}; give the path of a {what}") from error
    except OSError as error:
        raise RecipeError(f"cannot read the {what} {path}: {error.strerror}") from error
    if len(content) > _MOST_BYTES:
        raise RecipeError(f"{path}: expected a {what} of at most {_MOST_BYTES} bytes, found more; give another path")
    try:
        return content.decode("utf-8")
    except ValueError as error:
        raise RecipeError(f"{path}: expected UTF-8 text, found other bytes: {error}") from error
