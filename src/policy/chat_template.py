"""From a model's chat template to the marks around the turns of a dialogue.

Owns ``chat_marks_of``. Invariants: the template is a stranger's program and runs in a process of its own
(``policy.chat_rendering``), when a policy folder is made and never while episodes are played; a template whose
dialogue is not one turn after another, or that marks turns by text that a page could spell, is refused. Imports neither
torch nor transformers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from policy.chat_marks import ChatMarks
from policy.tokenizer import TOKENIZER_FILE, added_marks
from records.durable import read_text

_TEMPLATE_FILE = "chat_template.jinja"
_SETTINGS_FILE = "tokenizer_config.json"
_RENDERING = Path(__file__).with_name("chat_rendering.py")
_LIMIT_S = 20.0
"""Fixed: of starting a Python that renders three short dialogues."""
_ASKED = ("firstquestion", "secondquestion", "thirdquestion")
_ANSWERED = ("firstanswer", "secondanswer")


class ChatTemplateError(ValueError):
    """A model has no chat template, or one whose turns cannot be told apart."""


def has_chat_template(folder: Path) -> bool:
    """Return whether a model's files bring a chat template."""
    return bool(_template(folder, _settings(folder)))


def chat_marks_of(folder: Path, *, thinking: bool = False) -> ChatMarks:
    """Return the marks that the chat template of the model in ``folder`` puts around turns.

    With ``thinking`` the template is asked for a cue after which the model thinks, and an earlier reply stands behind
    that same cue: the history holds thoughts, so that it is what was sampled, where templates leave earlier ones out.

    Raises:
        ChatTemplateError: there is no template, it fails, or its dialogue is not one turn after another.
        OSError: a file cannot be read.
    """
    settings = _settings(folder)
    template = _template(folder, settings)
    if not template:
        raise ChatTemplateError(f"{folder} has no chat template; choose another policy.prompt_format")
    marks = _texts_around(_rendered(template, _special_tokens(settings), thinking))
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    opening, reply, user, cue = (tokenizer.encode(text, add_special_tokens=False).ids for text in marks)
    control = added_marks(tokenizer)
    if not user or user[0] not in control or control.isdisjoint(reply) or control.isdisjoint(cue):
        raise ChatTemplateError(
            f"the chat template of {folder} marks turns by plain text ({marks[2]!r}), which a page could imitate; "
            "choose another policy.prompt_format"
        )
    return ChatMarks(tuple(opening), tuple(cue if thinking else reply), tuple(user), tuple(cue))


def _texts_around(rendered: list[str]) -> tuple[str, str, str, str]:
    """Return the texts before, between and after turns, by dialogues of one, two and three questions."""
    one, two, three = rendered
    opening, asked, cue = one.partition(_ASKED[0])
    before, answered, after = two.partition(_ANSWERED[0])
    reply = before.removeprefix(opening + _ASKED[0])
    user, _, _ = after.partition(_ASKED[1])
    turns = [
        part for question, answer in zip(_ASKED, _ANSWERED, strict=False) for part in (question, reply, answer, user)
    ]
    if not asked or not answered or three != "".join([opening, *turns, _ASKED[2], cue]):
        raise ChatTemplateError(
            f"the chat template does not put one turn after another; three questions gave {three!r}; choose another "
            "policy.prompt_format"
        )
    return opening, reply, user, cue


def _rendered(template: str, tokens: dict[str, str], thinking: bool) -> list[str]:
    """Return the text of a dialogue of one, of two and of three questions."""
    messages = [{"role": "user", "content": _ASKED[0]}]
    dialogues = [list(messages)]
    for answer, question in zip(_ANSWERED, _ASKED[1:], strict=True):
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": question}]
        dialogues.append(list(messages))
    asked = json.dumps({"template": template, "dialogues": dialogues, "tokens": tokens, "thinking": thinking})
    command = [sys.executable, "-P", str(_RENDERING)]
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, timeout=_LIMIT_S, check=False, env={}
        )
    except subprocess.TimeoutExpired as error:
        raise ChatTemplateError(f"the chat template was not rendered within {_LIMIT_S:g} s") from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"])[-1]
        raise ChatTemplateError(f"the chat template cannot be rendered: {said}")
    texts: list[str] = json.loads(done.stdout)
    return texts


def _settings(folder: Path) -> dict[str, Any]:
    file = folder / _SETTINGS_FILE
    content = json.loads(read_text(file)) if file.is_file() else {}
    return content if isinstance(content, dict) else {}


def _template(folder: Path, settings: dict[str, Any]) -> str:
    if (folder / _TEMPLATE_FILE).is_file():
        return read_text(folder / _TEMPLATE_FILE)
    found = settings.get("chat_template") or ""
    if isinstance(found, list):  # one of several, by name
        found = next((entry["template"] for entry in found if entry["name"] == "default"), "")
    return str(found)


def _special_tokens(settings: dict[str, Any]) -> dict[str, str]:
    """Return the tokens that a template may ask for by name, such as ``bos_token``."""
    texts = {name: value["content"] if isinstance(value, dict) else value for name, value in settings.items()}
    return {name: text for name, text in texts.items() if name.endswith("_token") and isinstance(text, str)}
