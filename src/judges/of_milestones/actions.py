"""Actions and pages as sentences, for models that compare meanings.

Owns ``action_sentence`` and ``page_lines``. Invariant: pure; what an agent merely called an element is not in them,
only the element's real name.
"""

from __future__ import annotations

from judges.milestones import Acted
from judges.of_milestones.recorded import action_of, page_of, plain_lines
from records.episodes import FinalState, Step

_LONGEST = 120
"""Fixed: characters of a line; a longer one is a paragraph, which says many things."""

_SAID = {
    "click": "Click the {element}",
    "right_click": "Right-click the {element}",
    "hover": "Hover over the {element}",
    "type": "Type {argument} into the {element}",
    "search": "Search for {argument}",
    "select": "Choose {argument} as the {element}",
    "press_enter": "Press enter",
    "press_key": "Press {argument}",
    "drag": "Drag the {element}",
    "switch_tab": "Switch to the tab {argument}",
    "go_backward": "Go back",
    "go_forward": "Go forward",
    "scroll_up": "Scroll up",
    "scroll_down": "Scroll down",
    "wait": "Wait",
    "exit": "Answer {argument}",
}


def action_sentence(step: Step) -> str:
    """Return what a step did as a sentence, such as ``Click the link Cart``; "" for what was no action."""
    acted = action_of(step)
    return _sentence(acted, step.element or "")


def page_lines(step: Step | FinalState) -> tuple[str, ...]:
    """Return what a state's page said, a line each, without roles and numbers; fields have their values."""
    page = page_of(step)
    said = [f"{one.name}: {one.value}" if one.value else one.name for one in page.elements]
    return tuple(dict.fromkeys(line[:_LONGEST] for line in [*plain_lines(step), *said] if line.strip()))


def _sentence(acted: Acted, element: str) -> str:
    pattern = _SAID.get(acted.kind, "")
    return pattern.replace("{element}", element or "page").replace("{argument}", acted.argument or "").strip()
