"""A second opinion of a page: what a person could use there, and what it says, without the page script.

Owns the questions to DevTools: the accessibility tree, the listeners of every element, what frameworks keep as
handlers, and ``page_opinion.js`` for hit testing, styles and the focus order. Invariants: nothing here decides what an
observation shows; what the page answers is read as data of known types.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.browser.wire import Wire
from records.supervision import supervised

_SCRIPT = (Path(__file__).parent / "page_opinion.js").read_text(encoding="utf-8")
_ROLES = frozenset({
    "button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "switch", "slider", "spinbutton", "tab",
    "menuitem", "menuitemcheckbox", "menuitemradio", "option", "treeitem", "PopUpButton", "ToggleButton", "listbox",
    "DisclosureTriangle", "ColorWell", "Date", "DateTime", "InputTime", "textField",
})  # fmt: skip
_LISTENED = frozenset({"click", "mousedown", "mouseup", "pointerdown", "pointerup", "dblclick"})
_ROOT_LISTENS = 30
"""A framework's root listens to everything."""
_MOST_OBJECTS = 5_000
_HANDLED = """(() => { const found = [], key = /^__react(Props|EventHandlers)\\$/;
  for (const element of document.querySelectorAll('*')) {
    const held = Object.keys(element).find(name => key.test(name));
    const props = held && element[held];
    const handles = on => typeof props[on] === 'function';
    if (props && ['onClick', 'onMouseDown', 'onPointerDown'].some(handles)) found.push(element);
  } return found.slice(0, 5000); })()"""
_OFFERED = "[{numbers}].map(n => window.__waymark.state.refs[n])"


@dataclass(frozen=True, slots=True)
class Target:
    """One element that may be usable: ``why`` it is thought to be, ``unreached`` why no pointer gets there, else ''.

    Elements of one ``group`` are one target: a control and its label, a wrapper and the only thing in it.
    """

    group: int
    why: tuple[str, ...]
    unreached: str
    offered: bool
    disabled: bool
    wording: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """What was found: elements, the text that a person reads, and the size of the flattened accessibility tree."""

    targets: tuple[Target, ...]
    text: str
    tree_chars: int


async def second_opinion(wire: Wire, offered: tuple[int, ...]) -> Opinion:
    """Look at the page that ``wire`` leads to; ``offered`` are reference numbers of an observation of it."""
    tree = (await wire.send("Accessibility.getFullAXTree"))["nodes"]
    candidates = [(node["backendDOMNodeId"], "role " + node["role"]["value"]) for node in tree if _is_usable(node)]
    candidates += await _listening(wire)
    candidates += [(number, "handler") for number in await _numbers(wire, _HANDLED)]
    shown = await _numbers(wire, _OFFERED.format(numbers=",".join(map(str, offered))))
    world = await _own_world(wire)
    held = await _resolved(wire, world, [number for number, _ in candidates] + shown)
    words = json.dumps([word for _, word in candidates])
    function = (
        f"function (...held) {{ const words = {words}; return ({_SCRIPT})("
        "words.map((word, i) => [held[i], word]), held.slice(words.length)); }"
    )
    found = await wire.send("Runtime.callFunctionOn", {
        "functionDeclaration": function, "executionContextId": world, "returnByValue": True,
        "arguments": [{"objectId": one} if one else {"value": None} for one in held],
    })  # fmt: skip
    if "exceptionDetails" in found:
        raise RuntimeError(f"the page cannot be examined: {found['exceptionDetails']}")
    said = json.loads(found["result"]["value"])
    return Opinion(tuple(map(_target, said["targets"])), str(said["text"]), _flattened(tree))


def _target(said: dict[str, Any]) -> Target:
    why = tuple(map(str, said["why"]))
    flags = bool(said["offered"]), bool(said["disabled"])
    return Target(int(said["group"]), why, str(said["unreached"]), *flags, str(said["wording"]))


def _is_usable(node: dict[str, Any]) -> bool:
    return not node.get("ignored") and node.get("role", {}).get("value") in _ROLES and "backendDOMNodeId" in node


def _flattened(tree: list[dict[str, Any]]) -> int:
    """Return the characters of one line a node: number, role and name."""
    lines = 0
    for number, node in enumerate(tree):
        if not node.get("ignored"):
            role, name = (str(node.get(part, {}).get("value", "")) for part in ("role", "name"))
            lines += len(f"[{number}] {role} '{name}'\n")
    return lines


async def _listening(wire: Wire) -> list[tuple[int, str]]:
    document = (await wire.send("Runtime.evaluate", {"expression": "document"}))["result"]["objectId"]
    asked = {"objectId": document, "depth": -1, "pierce": True}
    heard = (await wire.send("DOMDebugger.getEventListeners", asked))["listeners"]
    kinds: dict[int, set[str]] = {}
    for one in heard:
        if "backendNodeId" in one:
            kinds.setdefault(one["backendNodeId"], set()).add(one["type"])
    return [(number, "listener") for number, types in kinds.items() if types & _LISTENED and len(types) < _ROOT_LISTENS]


async def _numbers(wire: Wire, expression: str) -> list[int]:
    """Return the numbers that DevTools gives to a list of elements of the page."""
    listed = (await wire.send("Runtime.evaluate", {"expression": expression}))["result"]
    if "objectId" not in listed:
        return []
    own = await wire.send("Runtime.getProperties", {"objectId": listed["objectId"], "ownProperties": True})
    held = [one["value"]["objectId"] for one in own["result"] if one["name"].isdigit() and "objectId" in one["value"]]
    described = await asyncio.gather(*(wire.send("DOM.describeNode", {"objectId": one}) for one in held))
    return [one["node"]["backendNodeId"] for one in described]


async def _own_world(wire: Wire) -> int:
    frame = (await wire.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
    made = await wire.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "second opinion"})
    return int(made["executionContextId"])


async def _resolved(wire: Wire, world: int, numbers: list[int]) -> list[str | None]:
    """Return the elements with these numbers as objects of a world; None for what is not an element there."""
    await wire.send("DOM.getDocument", {"depth": 0})
    asked = ({"backendNodeId": number, "executionContextId": world} for number in numbers[:_MOST_OBJECTS])
    found = await asyncio.gather(*(supervised(wire.send("DOM.resolveNode", one)) for one in asked))
    return [one["object"].get("objectId") if isinstance(one, dict) else None for one in found]
