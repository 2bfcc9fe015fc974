"""The prompts that WebRL published, read back: instruction, earlier answers, and the page.

Owns ``read_prompt``. The form is the one of ``policy.formats_webrl`` as text: a task line, one round for each earlier
action with a stand-in for its page, and the current page in a round without an answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_USER = "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
_ASSISTANT = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
_TASK = "Task Instruction:"
_ROUND = re.compile(r"(?:^|\n\n)Round (\d{1,6})\n\n" + re.escape(_USER))


class FormError(ValueError):
    """A record is not in its form; the text says what was expected and what was found."""


@dataclass(frozen=True, slots=True)
class ReadPrompt:
    """What a prompt says: the instruction, the ``past`` answers in order, and the page as it is now."""

    instruction: str
    past: tuple[str, ...]
    page: str


def read_prompt(text: str) -> ReadPrompt:
    """Return what a prompt says.

    Raises:
        FormError: it has no task line, its rounds are not numbered from 0, or one of them lacks its answer.
    """
    task, *rounds = _ROUND.split(text)
    instruction = task.removeprefix(_TASK).strip()
    if not task.startswith(_TASK) or not instruction or not rounds:
        raise FormError(f"expected '{_TASK} …' and rounds of user and assistant, found {text[:80]!r}")
    numbers, bodies = rounds[::2], rounds[1::2]
    if [int(number) for number in numbers] != list(range(len(numbers))):
        raise FormError(f"expected rounds 0 to {len(numbers) - 1} in order, found {', '.join(numbers[:20])}")
    past = []
    for number, body in enumerate(bodies[:-1]):
        _, mark, answer = body.partition(_ASSISTANT)
        if not mark or not answer.strip():
            raise FormError(f"round {number} has no answer of the assistant")
        past.append(answer.strip())
    page, mark, answer = bodies[-1].rpartition(_ASSISTANT)
    if not mark or answer.strip():
        raise FormError("expected the prompt to end where the assistant answers")
    return ReadPrompt(instruction, tuple(past), page.strip())
