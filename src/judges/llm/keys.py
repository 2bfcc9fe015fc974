"""Keys of language models: found where the settings say, held in memory, shown nowhere.

Owns ``Key`` and ``find_key``. Invariant: a key is in no text that leaves this process but the requests it is for: not
in a ``repr``, not in an error, not in a log, and never on a disk.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from judges.llm.settings import ModelSettings
from records.durable import read_text

_SHORTEST_SECRET = 16
"""Characters; what is shorter ("none", "EMPTY") is a word that an answer may hold, and no provider's key."""


class KeyMissing(ValueError):
    """There is no usable key where the settings say; the text says where that is, and what to do."""


class Key:
    """A key, or none; it cannot be pickled, so that it is not sent by accident."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        self._key = key

    def reveal(self) -> str:
        """Return the key, for the client that sends it."""
        return self._key

    def hidden_in(self, text: str) -> str:
        """Return ``text`` without the key, plain or as JSON writes it: an endpoint may say it back.

        A text that is to be cut is cut afterwards, or a piece of the key would stay.
        """
        written = (json.dumps(self._key)[1:-1].replace("/", "\\/"), json.dumps(self._key)[1:-1], self._key)
        for form in written if self._key else ():
            text = text.replace(form, "[key]")
        return text

    def hidden_in_answer(self, text: str) -> str:
        """Return a model's own text without the key, unless the key is a mere word."""
        return self.hidden_in(text) if len(self._key) >= _SHORTEST_SECRET else text

    def __repr__(self) -> str:
        return "Key()"

    def __reduce__(self) -> str:
        raise TypeError("a key stays in its process; send the name of its variable instead")


def find_key(settings: ModelSettings) -> Key:
    """Return the key of a model, an empty one where its settings name none; raise ``KeyMissing``."""
    if settings.key_variable:
        key = os.environ.get(settings.key_variable, "").strip()
        if not key:
            raise KeyMissing(
                f"the environment variable {settings.key_variable} is not set; set it where the run starts (on a "
                "cluster: where Ray is started on the driver's node), or name a key_file"
            )
        return _checked(key, f"the environment variable {settings.key_variable}")
    if settings.key_file:
        path = Path(settings.key_file).expanduser()
        try:
            key = read_text(path).strip()
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else "it is no text"
            raise KeyMissing(f"the key file {path} cannot be read: {said}") from None
        return _checked(key, f"the key file {path}")
    return Key("")


def _checked(key: str, source: str) -> Key:
    """Return a key that a header can carry: of one that it cannot, an HTTP library's error would quote the whole."""
    if not key or not key.isascii() or not key.isprintable():
        raise KeyMissing(f"{source} must hold one line, the key, of printable ASCII characters and nothing else")
    return Key(key)
