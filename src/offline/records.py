"""The records of a JSON file that somebody else wrote, one after the other.

Owns how such files are read. Invariants: nothing in them is evaluated or unpickled; what one file or record may hold is
bounded; a record that cannot be read is left out and counted, and those before it (in a file of lines also those
behind it) are not lost. A record is whatever JSON holds: its reader checks it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from offline.left_out import LeftOuts, Place, Reason
from records.durable import NotAFile, open_file

LARGEST_FILE_BYTES = 4 << 30
"""A file of an array is read at once; WebRL's largest has about 150 MB."""
LARGEST_RECORD_BYTES = 64 << 20
"""A record is one step with its page, or one episode with all of them."""
_PICKLED = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt")
_BETWEEN = " \t\r\n,"


class SourceError(ValueError):
    """The source as a whole cannot be imported; the text says what to do."""


def read_records(file: Path, name: str, left_out: LeftOuts) -> Iterator[tuple[Place, object]]:
    """Return the records of a file with one array, or with one record a line, each with its place.

    Args:
        file: where it lies.
        name: what it is called in reports.
        left_out: is told of records that cannot be read.

    Raises:
        SourceError: it is pickled, or larger than ``LARGEST_FILE_BYTES``.
        OSError: it cannot be opened.
    """
    if file.suffix in _PICKLED:
        raise SourceError(f"{file} is pickled, which Waymark never loads: {_AS_JSON}")
    try:
        with open_file(file) as opened:
            size = file.stat().st_size
            if size > LARGEST_FILE_BYTES:
                raise SourceError(f"{file} has {size} bytes, the limit is {LARGEST_FILE_BYTES}; split it")
            array = file.suffix != ".jsonl" and opened.peek(64).lstrip()[:1] == b"["
            content = opened.read() if array else b""
    except NotAFile as error:
        raise SourceError(str(error)) from error
    yield from _of_array(content, name, left_out) if array else _of_lines(file, name, left_out)


_AS_JSON = (
    "with a Python that you trust it to, write json.dump(torch.load(FILE, weights_only=True), open('FILE.json', 'w')) "
    "and import that"
)


def _of_array(content: bytes, name: str, left_out: LeftOuts) -> Iterator[tuple[Place, object]]:
    text, decoder = content.decode("utf-8", "replace"), json.JSONDecoder()
    at, number = text.index("[") + 1, 0
    while True:
        while at < len(text) and text[at] in _BETWEEN:
            at += 1
        if at < len(text) and text[at] == "]":
            return
        number += 1
        try:
            record, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            # Where a record of an array ends is not known once it is broken, so that nothing behind it can be found.
            left_out.add(Reason.DAMAGED, Place(name, number), f"no JSON from here to the file's end: {_said(error)}")
            return
        if end - at > LARGEST_RECORD_BYTES:
            left_out.add(Reason.DAMAGED, Place(name, number), f"a record of {end - at} characters")
        else:
            yield Place(name, number), record
        at = end


def _of_lines(file: Path, name: str, left_out: LeftOuts) -> Iterator[tuple[Place, object]]:
    number = 0
    with open_file(file) as opened:
        while line := opened.readline(LARGEST_RECORD_BYTES):
            number += 1
            if _is_cut(line):
                left_out.add(Reason.DAMAGED, Place(name, number), f"a line of {LARGEST_RECORD_BYTES} bytes or more")
                while _is_cut(opened.readline(LARGEST_RECORD_BYTES)):
                    pass
                continue
            if not line.strip():
                continue
            try:
                yield Place(name, number), json.loads(line.decode("utf-8", "replace"))
            except (ValueError, RecursionError) as error:
                left_out.add(Reason.DAMAGED, Place(name, number), f"no JSON: {_said(error)}")


def _is_cut(line: bytes) -> bool:
    return len(line) == LARGEST_RECORD_BYTES and not line.endswith(b"\n")


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
