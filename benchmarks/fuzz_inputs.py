"""Hostile inputs from a seed: texts, JSON values, mutations of texts and of bytes.

Owns how inputs are drawn. Pure: an input is determined by its generator's state, so a failure is named by its
target, its seed and its number. Imports the standard library only.
"""

from __future__ import annotations

import random
from typing import Any

SPELLINGS = (
    "<|im_start|>",
    "<start_of_turn>",
    "<eos>",
    "[INST]",
    "</s>",
    "<|eot_id|>",
    "Task:",
    "Action:",
    "Page:",
    "# Element:",
    'do(action="Click", element="3")',
    'exit(message="',
    "<think>",
    "</answer>",
    "```",
    "'''",
    '"""',
    "\\",
    "\\u",
    "\\x",
    "<script>alert(1)</script>",
    "javascript:alert(1)",
    "{{ 7 * 191 }}",
    "{% include '/etc/passwd' %}",
    "{0.__class__}",
    "%s%n",
    "$(id)",
    "`id`",
    "; rm -rf /",
    "| cat",
    "' OR 1=1 --",
    "../../etc/passwd",
    "/dev/zero",
    "file:///etc/passwd",
    "!!python/object/apply:os.system [id]",
    "&a [*a, *a]",
    "<<: *a",
    "__import__('os').system('id')",
    "__SHOP__",
    "__X__",
    "\x00",
    "\r\n",
    "\n",
    "\t",
    "\x1b[2J",
    "\x85",
    "\u2028",
    "\u202e",
    "\u200b",
    "\ufeff",
    "\ufdd0",
    "\ud800",
    "😀",
    "ﷺ",
    "é",
    "＜s＞",
    "1e999",
    "NaN",
    "-0",
    "9" * 50,
    "0x_",
    "2020-99-99",
    "1:99:99",
    "(" * 40,
    "[" * 40,
    "{" * 40,
    "-" * 40,
    "=",
    ":",
    ",",
    '"',
    "'",
    "#",
    "|",
    "&",
    "<",
    ">",
    " ",
    "a",
    "0",
    ".",
    "*",
    "~",
    "@",
)
"""Pieces that mean something to one of the readers."""


def text(rng: random.Random, longest: int = 60) -> str:
    """Return a text of at most about ``longest`` characters; now and then a far longer one."""
    if rng.random() < 0.002:
        return rng.choice(SPELLINGS) * rng.randrange(1, 3_000)
    parts, size = [], 0
    goal = rng.randrange(longest + 1)
    while size < goal:
        part = (
            rng.choice(SPELLINGS)
            if rng.random() < 0.6
            else chr(rng.choice((rng.randrange(128), rng.randrange(0x3000))))
        )
        parts.append(part)
        size += len(part)
    return "".join(parts)


def value(rng: random.Random, depth: int = 3) -> Any:
    """Return anything that JSON can hold, and a few things that Python's reader takes beyond that."""
    kind = rng.randrange(10 if depth else 7)
    if kind < 2:
        return text(rng)
    if kind == 2:
        return rng.choice((0, 1, -1, 2**31, 2**63, -(10**30), 7))
    if kind == 3:
        return rng.choice((0.0, -1.5, 1e308, float("inf"), float("nan")))
    if kind == 4:
        return None
    if kind < 7:
        return rng.random() < 0.5
    if kind == 7:
        return nested(rng)
    children = range(rng.randrange(4))
    if kind == 8:
        return [value(rng, depth - 1) for _ in children]
    return {text(rng, 8): value(rng, depth - 1) for _ in children}


def nested(rng: random.Random) -> Any:
    """Return lists or objects in each other, mostly a few, sometimes hundreds deep."""
    found: Any = []
    for _ in range(rng.choice((2, 5, 50, 400))):
        found = [found] if rng.random() < 0.5 else {"a": found}
    return found


def changed(rng: random.Random, found: Any) -> Any:
    """Return a copy of a JSON value in which something, somewhere, is something else, missing or doubled."""
    if rng.random() < 0.15:
        return value(rng)
    if isinstance(found, dict) and found:
        copy, key = dict(found), rng.choice(list(found))
        how = rng.randrange(8)
        if how == 0:
            del copy[key]
        elif how == 1:
            copy[text(rng, 8)] = value(rng)
        else:
            copy[key] = changed(rng, copy[key])
        return copy
    if isinstance(found, list) and found:
        items, index = list(found), rng.randrange(len(found))
        how = rng.randrange(8)
        if how == 0:
            del items[index]
        elif how == 1:
            items.insert(index, items[index])
        else:
            items[index] = changed(rng, items[index])
        return items
    if isinstance(found, str) and rng.random() < 0.7:
        return mutated(rng, found)
    return value(rng)


def mutated(rng: random.Random, found: str) -> str:
    """Return a text with a few places cut, doubled, swapped or filled with something hostile."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        start = rng.randrange(len(found) + 1)
        stop = min(len(found), start + rng.choice((0, 1, 3, 20)))
        how = rng.randrange(4)
        filling = (rng.choice(SPELLINGS), "", found[start:stop] * 2, text(rng, 20))[how]
        found = found[:start] + filling + found[stop:]
    return found


def damaged(rng: random.Random, content: bytes) -> bytes:
    """Return bytes that are cut short, of which bits are turned, or parts overwritten."""
    damage = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if not damage:
            break
        at, how = rng.randrange(len(damage)), rng.randrange(5)
        if how == 0:
            del damage[at:]
        elif how == 1:
            damage[at] ^= 1 << rng.randrange(8)
        elif how == 2:
            damage[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\0\0\0\x80"))
        elif how == 3:
            damage[at : at + 8] = rng.randbytes(8)
        else:
            del damage[at : at + rng.randrange(1, 64)]
    return bytes(damage)
