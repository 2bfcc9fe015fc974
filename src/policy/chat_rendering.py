"""A script of its own that renders a chat template on dialogues, both from standard input, as JSON on standard output.

Owns what a stranger's template may do: Jinja's sandbox, in a process that has little time and memory and nothing to
give away. What time it is stays unknown, so that a prompt does not depend on the day. Imports nothing of Waymark.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

_CPU_S = 5
"""Fixed: of the processor, which three short dialogues take milliseconds of."""
_MEMORY_BYTES = 2**30


def render(
    template: str, dialogues: list[list[dict[str, str]]], tokens: dict[str, str], *, thinking: bool
) -> list[str]:
    """Return the text of each dialogue, up to where the assistant is to speak; raise ``TemplateError``.

    A model that may think aloud or not is asked to where ``thinking`` says so.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _raise
    compiled = environment.from_string(template)
    settings: dict[str, Any] = {"add_generation_prompt": True, "enable_thinking": thinking, "tools": None, **tokens}
    return [compiled.render(messages=messages, **settings) for messages in dialogues]


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _main() -> None:
    with contextlib.suppress(OSError, ValueError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    asked = json.load(sys.stdin)
    try:
        texts = render(asked["template"], asked["dialogues"], asked["tokens"], thinking=asked["thinking"])
    except (ArithmeticError, LookupError, TemplateError, TypeError, ValueError, MemoryError, RecursionError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    json.dump(texts, sys.stdout)


if __name__ == "__main__":
    _main()
