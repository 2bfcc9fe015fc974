"""What stands around the turns of a model's own dialogue, as token ids.

Owns ``ChatMarks`` and its file in a policy folder. It is data only: ``policy.chat_template`` makes it, once. Imports
neither torch nor transformers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from records.durable import read_text, replace_file

CHAT_FILE = "chat.json"


@dataclass(frozen=True, slots=True)
class ChatMarks:
    """The ids before, between and after the turns of user and assistant.

    ``opening`` stands before the first turn, with the begin mark and the template's own system prompt where it has one;
    ``reply`` between a turn of the user and what the assistant answered; ``user`` between that and the user's next
    turn, its first id being the one that ends a reply; ``cue`` after the user's latest turn, where the next reply
    begins.
    """

    opening: tuple[int, ...]
    reply: tuple[int, ...]
    user: tuple[int, ...]
    cue: tuple[int, ...]

    @property
    def end_of_reply(self) -> int:
        """The id by which the model ends its turn."""
        return self.user[0]

    @property
    def ids(self) -> frozenset[int]:
        """All ids of all marks."""
        return frozenset((*self.opening, *self.reply, *self.user, *self.cue))


def write_chat_marks(marks: ChatMarks, folder: Path) -> None:
    """Write ``marks`` to the policy folder, whole or not at all."""
    replace_file(folder / CHAT_FILE, (json.dumps(asdict(marks)) + "\n").encode())


def read_chat_marks(folder: Path) -> ChatMarks | None:
    """Return the marks of a policy folder, None where it has none.

    Raises:
        ValueError: the file holds something else.
    """
    file = folder / CHAT_FILE
    if not file.exists():
        return None
    content, names = json.loads(read_text(file)), ("opening", "reply", "user", "cue")
    marks: list[tuple[int, ...]] = []
    for name in names if isinstance(content, dict) else ():
        ids = content.get(name)
        if isinstance(ids, list) and all(type(i) is int for i in ids):
            marks.append(tuple(ids))
    if len(marks) != len(names) or not content["user"]:
        raise ValueError(f"{file}: expected lists of token ids called {', '.join(names)}; make the policy folder again")
    return ChatMarks(*marks)
