"""The action language: text written by a policy to ``Action`` and back.

Owns the table of actions and both directions of the translation. Invariants: text is read with
``ast`` against a white list and nothing in it is ever evaluated; every text either gives exactly
one ``Action`` or raises ``GrammarError`` with one line the agent can act on; ``parse`` undoes
``format_action``. Touches no browser and no settings.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import dataclass, replace

from records.environment import Action

_SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Half a character, which no text may hold that is sent or stored."""

MAX_TEXT = 8_000
"""Longest text that is read, in characters; longer output is a runaway generation, not an action."""

STYLES = ("waymark", "answer")
"""``waymark``: ``# Element:`` line, then the call. ``answer``: the same inside ``<answer>`` tags."""


class GrammarError(ValueError):
    """The text is not an action; the message is one line, written for the agent."""


@dataclass(frozen=True, slots=True)
class ActionForm:
    """How one kind is written: its name in the prompt, and whether it takes an argument and an element.

    ``argument`` and ``element`` are ``required``, ``optional`` or ``none``.
    """

    name: str
    argument: str
    element: str


FORMS: dict[str, ActionForm] = {
    "click": ActionForm("Click", "none", "required"),
    "right_click": ActionForm("Right Click", "none", "required"),
    "type": ActionForm("Type", "required", "required"),
    "search": ActionForm("Search", "required", "required"),
    "hover": ActionForm("Hover", "none", "required"),
    "drag": ActionForm("Drag", "required", "required"),
    "scroll_up": ActionForm("Scroll Up", "none", "optional"),
    "scroll_down": ActionForm("Scroll Down", "none", "optional"),
    "press_enter": ActionForm("Press Enter", "none", "optional"),
    "press_key": ActionForm("Press Key", "required", "optional"),
    "switch_tab": ActionForm("Switch Tab", "required", "none"),
    "select": ActionForm("Select Dropdown Option", "required", "required"),
    "wait": ActionForm("Wait", "optional", "none"),
}
"""Kinds written as ``do(action=…)``; the other three are calls of their own."""

KINDS = (*FORMS, "go_backward", "go_forward", "exit")

_FILES = frozenset({"upload", "upload file", "attach", "attach file"})
"""What agents of other systems may do and these may not."""

_LARGEST = 10**15
"""Numbers from here on are not something an agent writes for an element or a text."""

_BY_NAME = {form.name.lower(): kind for kind, form in FORMS.items()}
_PARAMETERS = {
    "do": ("action", "argument", "element"),
    "exit": ("message",),
    "go_backward": (),
    "go_forward": (),
}
_COMMENT = re.compile(r"^[ \t]*#[ \t]*(element|note)[ \t]*:(.*)$", re.IGNORECASE | re.MULTILINE)
_THINK = re.compile(r"^.*?</think>", re.DOTALL)
_ANSWER = re.compile(r"^<answer>(.*)</answer>$", re.DOTALL)
_FENCE = re.compile(r"^```[a-z]*\n(.*?)\n?```$", re.DOTALL)


def parse(text: str) -> Action:
    """Read one action; surrounding ``<think>``/``<answer>`` tags, a code fence and comments are allowed.

    Raises:
        GrammarError: with one line saying what was expected and what was found.
    """
    if len(text) > MAX_TEXT:
        raise GrammarError(f"an action has at most {MAX_TEXT} characters; yours has {len(text)}")
    source = text.strip()
    call = _single_call(source)
    if call is None:
        source = _unwrap(source)
        call = _single_call(source)
    if call is None:
        raise GrammarError(f'expected one call such as do(action="Click", element="3"); found {_excerpt(source)}')
    function, values = _arguments(call, source)
    comment, note = _comments(source)
    return replace(_build(function, values), comment=comment, note=note)


def format_action(action: Action, style: str = "waymark") -> str:
    """Write an action so that ``parse`` gives it back (comment and note with white space collapsed).

    Raises:
        ValueError: when the action or the style is not one the grammar has.
    """
    if style not in STYLES:
        raise ValueError(f"unknown action style {style!r}; use one of {', '.join(STYLES)}")
    if action.kind not in KINDS:
        raise ValueError(f"unknown action kind {action.kind!r}; use one of {', '.join(KINDS)}")
    if action.kind == "exit":
        call = f"exit(message={_quote(action.argument or '')})"
    elif action.kind in FORMS:
        parts = [f"action={_quote(FORMS[action.kind].name)}"]
        if action.argument is not None:
            parts.append(f"argument={_quote(action.argument)}")
        if action.element_id is not None:
            parts.append(f'element="{action.element_id}"')
        call = f"do({', '.join(parts)})"
    else:
        call = f"{action.kind}()"
    comments = (("Element", _clean(action.comment or "")), ("Note", _clean(action.note or "")))
    body = "\n".join([*(f"# {kind}: {text}" for kind, text in comments if text), call])
    return body if style == "waymark" else f"<answer>\n{body}\n</answer>"


def _unwrap(source: str) -> str:
    """Take off a reasoning block, answer tags and a code fence, in that order."""
    source = _THINK.sub("", source, count=1).strip()
    for pattern in (_ANSWER, _FENCE):
        match = pattern.match(source)
        if match:
            source = match.group(1).strip()
    return source


def _single_call(source: str) -> ast.Call | None:
    """Return the only call in ``source``, None when it is not Python; raise when there are several."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(source).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    calls = [s.value for s in body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    if len(body) > 1 and len(calls) == len(body):
        raise GrammarError(f"expected exactly one action; found {len(body)}")
    return calls[0] if len(body) == 1 and calls else None


def _arguments(call: ast.Call, source: str) -> tuple[str, dict[str, str]]:
    """Return the function's name and its non-empty arguments as text."""
    function = call.func.id if isinstance(call.func, ast.Name) else ""
    if function not in _PARAMETERS:
        raise GrammarError(f"expected do, exit, go_backward or go_forward; found {_excerpt_of(call.func, source)}")
    names = _PARAMETERS[function]
    if len(call.args) > len(names):
        raise GrammarError(f"{function} takes at most {len(names)} arguments; found {len(call.args)}")
    pairs = list(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in names or keyword.arg in dict(pairs):
            given = _excerpt(keyword.arg or "**")
            raise GrammarError(f"{function} takes {', '.join(names) or 'no arguments'}, each once; found {given}")
        pairs.append((keyword.arg, keyword.value))
    return function, {name: value for name, node in pairs if (value := _literal(name, node, source)) is not None}


def _literal(name: str, node: ast.expr, source: str) -> str | None:
    """Return a string, number or None literal as text; anything else is refused."""
    if isinstance(node, ast.Constant):
        if node.value is None:
            return None
        if isinstance(node.value, str):
            return _SURROGATE.sub("\ufffd", node.value)
        if isinstance(node.value, int | float) and not isinstance(node.value, bool) and abs(node.value) < _LARGEST:
            return str(node.value)
    raise GrammarError(f"{name} must be a quoted text; found {_excerpt_of(node, source)}")


def _build(function: str, values: dict[str, str]) -> Action:
    if function == "exit":
        return Action("exit", argument=values.get("message", ""))
    if function != "do":
        return Action(function)
    if "action" not in values:
        raise GrammarError('do needs an action, for example do(action="Click", element="3")')
    wanted = _clean(values["action"].replace("_", " ")).lower()
    if wanted in _FILES:
        raise GrammarError("files cannot be given to a page here; do the task without, or exit and say so")
    kind = _BY_NAME.get(wanted)
    if kind is None:
        offered = ", ".join(form.name for form in FORMS.values())
        raise GrammarError(f"unknown action {_excerpt(values['action'])}; the actions are {offered}")
    form = FORMS[kind]
    argument, element = values.get("argument"), values.get("element") or None
    if argument is None and form.argument == "required":
        raise GrammarError(f"{form.name} needs an argument")
    if argument and form.argument == "none":
        raise GrammarError(f"{form.name} takes no argument; found {_excerpt(argument)}")
    if element is None and form.element == "required":
        raise GrammarError(f"{form.name} needs an element")
    if element is not None and form.element == "none":
        raise GrammarError(f"{form.name} takes no element; found {_excerpt(element)}")
    if kind == "drag":
        argument = str(_element_id(argument or "", "the argument of Drag, where the element is dropped,"))
    keep = argument if form.argument == "required" else (argument or None)
    return Action(kind, keep, None if element is None else _element_id(element))


def _element_id(text: str, what: str = "element") -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 7):
        raise GrammarError(f"{what} must be the number at the end of a line of the page; found {_excerpt(text)}")
    return int(digits)


def _comments(source: str) -> tuple[str | None, str | None]:
    """Return what the first ``# Element:`` line and all ``# Note:`` lines say."""
    lines = [(kind.lower(), text) for kind, text in _COMMENT.findall(source)]
    element = next((text for kind, text in lines if kind == "element"), "")
    note = " ".join(text for kind, text in lines if kind == "note")
    return _clean(element) or None, _clean(note) or None


def _clean(text: str) -> str:
    return " ".join(text.replace("\x00", " ").split())


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _excerpt_of(node: ast.expr, source: str) -> str:
    """Quote the text of a node; unlike unparsing, this cannot run out of stack on deeply nested text."""
    return _excerpt(ast.get_source_segment(source, node) or "")


def _excerpt(text: str) -> str:
    flat = _clean(text)
    quoted = repr(flat if len(flat) <= 60 else flat[:57] + "...")
    return quoted if len(quoted) <= 120 else f"{quoted[:116]}...'"  # what cannot be shown is longer than it was
