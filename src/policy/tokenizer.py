"""Text to token ids and back, for prompts and actions, without torch.

Owns ``TextTokenizer``, the only way Waymark encodes text. Invariants: text never becomes a control
id (begin, end, padding, chat markers), so a page that spells a control token out stays text; control
ids enter a prompt only as ids. Works on the ``tokenizers`` library alone, so rollout images carry no
torch; it may not import torch or transformers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from policy.chat_marks import ChatMarks, read_chat_marks
from records.durable import read_json

TOKENIZER_FILE = "tokenizer.json"
_SETTINGS_FILES = ("generation_config.json", "config.json", "tokenizer_config.json")

_MARKER = re.compile(
    r"<\|.*\|>|</?(s|bos|eos|pad|unk|mask|cls|sep|think|im_\w+|(start|end)_of_\w+|tool\w*|turn\|?|\|\w+)>"
    r"|\[/?[A-Z][A-Z_]*\]|<</?SYS>>"
)
"""Added tokens that open or close something in a model's own dialogue, though its files do not call them special."""


class TextTokenizer:
    """A tokenizer whose control tokens can be reached by id only.

    Args:
        tokenizer: the underlying tokenizer.
        stop_ids: ids that end a reply; the first is the one demonstrations end with.
        bos_id: id that opens every prompt, None where the model has none.
        pad_id: id for padding; the first stop id where the model names none.
        chat: what stands around the turns of the model's dialogue, where prompts are one.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        stop_ids: Sequence[int],
        bos_id: int | None,
        pad_id: int,
        chat: ChatMarks | None = None,
    ) -> None:
        if not stop_ids:
            raise ValueError("a policy tokenizer needs at least one stop id; found none")
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self.stop_ids: tuple[int, ...] = tuple(stop_ids)
        self.bos_id = bos_id
        self.pad_id = pad_id
        self.chat = chat
        self.vocab_size: int = tokenizer.get_vocab_size(with_added_tokens=True)
        added = tokenizer.get_added_tokens_decoder()
        special = {i for i, token in added.items() if token.special or _MARKER.fullmatch(token.content)}
        marks = chat.ids & added_marks(tokenizer) if chat is not None else set()
        begin = {bos_id} if bos_id is not None else set()
        self.control_ids = frozenset(special | set(stop_ids) | {pad_id} | begin | marks)
        texts = sorted(text for i in self.control_ids if (text := tokenizer.id_to_token(i)))
        self._spelled = re.compile(f"(?={'|'.join(map(re.escape, texts)) or '(?!)'})")
        identity = json.dumps([list(self.stop_ids), bos_id, pad_id]) + tokenizer.to_str()
        self.digest: str = hashlib.sha256(identity.encode()).hexdigest()

    @classmethod
    def load(cls, path: str | Path) -> TextTokenizer:
        """Load from a model directory.

        Raises:
            FileNotFoundError: there is no such directory, or it has no ``tokenizer.json``.
            ValueError: ``tokenizer.json`` is damaged, or no file names a stop token.
        """
        folder = Path(path)
        file = folder / TOKENIZER_FILE
        if not file.is_file():
            raise FileNotFoundError(
                f"expected {TOKENIZER_FILE} in {folder}, found {sorted(p.name for p in folder.glob('*'))}; "
                "give the directory of a saved model"
            )
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library has no narrower one
            raise ValueError(f"{file} is no tokenizer: {error}; download the model again, whole") from error
        generation, model, text = (_read_json(folder / name) for name in _SETTINGS_FILES)
        stop_ids = _ids(generation.get("eos_token_id"))
        stop_ids += _ids(model.get("eos_token_id")) + _ids(_token_id(tokenizer, text.get("eos_token")))
        if not stop_ids:
            raise ValueError(f"no stop token: expected eos_token_id or eos_token in {', '.join(_SETTINGS_FILES)}")
        chat = read_chat_marks(folder)
        stop_ids = list(dict.fromkeys(stop_ids if chat is None else [chat.end_of_reply, *stop_ids]))
        bos_id = _token_id(tokenizer, text.get("bos_token"))
        if not text.get("add_bos_token", True):
            bos_id = None
        pad_id = _token_id(tokenizer, text.get("pad_token"))
        pad_id = stop_ids[0] if pad_id is None else pad_id
        return cls(tokenizer, stop_ids=stop_ids, bos_id=bos_id, pad_id=pad_id, chat=chat)

    def encode(self, text: str) -> list[int]:
        """Return the ids of ``text``; none of them is a control id, whatever the text says."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        if self.control_ids.isdisjoint(ids):
            return ids
        return self._encode_around_controls(text)

    def _encode_around_controls(self, text: str) -> list[int]:
        """Encode text that spells a control token: break every spelling after its first character."""
        breaks = [match.start() + 1 for match in self._spelled.finditer(text)]
        pieces = [text[start:end] for start, end in zip([0, *breaks], [*breaks, None], strict=True)]
        return [i for piece in pieces for i in self._encode_piece(piece)]

    def _encode_piece(self, piece: str) -> list[int]:
        """Encode text in which no control token is spelled out; what still becomes one is taken letter by letter.

        A normaliser may turn other letters into a control token's; a letter that is one by itself is left out.
        """
        ids: list[int] = self._tokenizer.encode(piece, add_special_tokens=False).ids
        if self.control_ids.isdisjoint(ids):
            return ids
        letters = (self._tokenizer.encode(letter, add_special_tokens=False).ids for letter in piece)
        return [i for ids in letters for i in ids if i not in self.control_ids]

    def control_id(self, token: str) -> int | None:
        """Return the id of a control token by its spelling, None where this tokenizer has no such token."""
        found: int | None = self._tokenizer.token_to_id(token)
        return found if found in self.control_ids else None

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ``ids``; control tokens appear by name, so that nothing is hidden."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=False)
        return text


def added_marks(tokenizer: Tokenizer) -> set[int]:
    """Return the ids of added tokens that may mark something: all but white space, of which some models add runs."""
    return {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.content.strip(" \t\r\n▁")}


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return read_json(path)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _ids(value: object) -> list[int]:
    if value is None:
        return []
    listed = value if isinstance(value, list) else [value]
    if not all(type(one) is int and one >= 0 for one in listed):
        raise ValueError(f"eos_token_id: expected a token's id, or a list of them, found {str(value)[:80]!r}")
    return list(listed)


def _token_id(tokenizer: Tokenizer, token: object) -> int | None:
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str | None):
        raise ValueError(f"eos_token, bos_token, pad_token: expected a text, found {str(token)[:80]!r}")
    found: int | None = tokenizer.token_to_id(text) if text else None
    return found
