"""Keys of language models: found where the settings say, held in memory, shown nowhere.

Owns ``Key`` and ``find_key``. Invariant: a key is in no text that leaves this process but the requests it is for: not
in a ``repr``, not in an error, not in a log, and never on a disk.
"""

from __future__ import annotations

import os
from pathlib import Path

from judges.llm.settings import ModelSettings
from records.durable import read_text


class KeyMissing(ValueError):
    """There is no key where the settings say; the text says where that is, and what to do."""


class Key:
    """A key, or none; it cannot be pickled, so that it is not sent by accident."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        self._key = key

    def reveal(self) -> str:
        """Return the key, for the client that sends it."""
        return self._key

    def hidden_in(self, text: str) -> str:
        """Return ``text`` without the key: an endpoint may say it back."""
        return text.replace(self._key, "[key]") if self._key else text

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
        return Key(key)
    if settings.key_file:
        path = Path(settings.key_file).expanduser()
        try:
            key = read_text(path).strip()
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else "it is no text"
            raise KeyMissing(f"the key file {path} cannot be read: {said}") from None
        if not key or "\n" in key:
            raise KeyMissing(f"the key file {path} must hold one line, the key")
        return Key(key)
    return Key("")
