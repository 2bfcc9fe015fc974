"""Files that people write for Waymark in YAML: recipes and studies.

Owns ``read_yaml_file`` and ``parse_yaml``. Invariant: whatever lies at the path and in the text, reading ends at once,
with values or with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

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


def parse_yaml(text: str, origin: str) -> Any:
    """Return what ``text`` says, in plain sections and values; ``origin`` names it in errors.

    Raises:
        RecipeError: it is no YAML, has a key twice or an alias, or a value that nothing can hold.
    """
    try:
        return _load(text)
    except yaml.YAMLError as error:
        raise RecipeError(f"{origin}: not valid YAML: {error}") from error
    except (ValueError, RecursionError) as error:
        # A date that no calendar has, a number of thousands of digits, a thousand brackets.
        raise RecipeError(f"{origin}: expected plain sections and values, found {error}") from error


class _PlainYaml(yaml.composer.Composer, yaml.constructor.SafeConstructor):
    """YAML's plain values without aliases, of which a few lines make a mapping of any size, and without doubled keys.

    Of a key that is written twice YAML would silently keep the last.
    """

    check_event: Callable[..., bool]
    peek_event: Callable[[], Any]

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Build the next node; refuse one that stands for another."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.composer.ComposerError(None, None, f"found the alias {event.anchor!r}", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping after checking that its keys differ."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    "while reading a section", node.start_mark, f"the key {key!r} is there twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


class _PythonLoader(_PlainYaml, yaml.SafeLoader):
    """Shows the line with an error in its message."""


if yaml.__with_libyaml__:

    class _LibyamlLoader(_PlainYaml, yaml.CSafeLoader):
        """Several times faster."""

        def __init__(self, stream: str) -> None:
            _PlainYaml.__init__(self)
            yaml.CSafeLoader.__init__(self, stream)


def _load(text: str) -> Any:
    # What libyaml refuses is read again by the parser whose errors show the line.
    if yaml.__with_libyaml__:
        with suppress(yaml.YAMLError):
            return yaml.load(text, Loader=_LibyamlLoader)
    return yaml.load(text, Loader=_PythonLoader)
