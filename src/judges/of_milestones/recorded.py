"""Recorded episodes as milestone checks see them: pages read back from what the agent was shown.

Owns ``milestones_of_record``, by which milestones are checked after an episode was played: new ones, or those of
another task. Invariants: pure; a page is read back from its text, in which elements stand one a line, so that parts of
it that were not shown are not known; where the state after the last action is not recorded, what that action alone
changed is seen only where a check asks for the action.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from judges.milestones import Acted, reached
from records.environment import Element, Observation
from records.episodes import FinalState, Milestone, Step, Trajectory

_LONGEST_ID = 9
"""Fixed: digits of an element's number; a page holds fewer elements."""
_CALL = re.compile(r'(do|exit|go_backward|go_forward)\((?:action="([^"]*)")?')
_ARGUMENT = re.compile(r'(?:argument|message)="((?:[^"\\]|\\.)*)"')


def milestones_of_record(episode: Trajectory, milestones: Sequence[Milestone]) -> npt.NDArray[np.bool_]:
    """Return (T + 1, K): whether each milestone was reached before each of the T actions, and after the last.

    Raises:
        ValueError: a check is malformed.
    """
    rows: list[tuple[bool, ...]] = []
    history: list[Acted] = []
    seen = Observation("", "", "", "", ())
    for step in episode.steps:
        seen = page_of(step)
        rows.append(reached(milestones, rows[-1] if rows else (), seen, history))
        history.append(action_of(step))
    if episode.final_state is not None:
        seen = page_of(episode.final_state)
    rows.append(reached(milestones, rows[-1] if rows else (), seen, history))
    return np.array(rows, dtype=np.bool_).reshape(len(rows), len(milestones))


def page_of(step: Step | FinalState) -> Observation:
    """Return the page that a state showed, as far as its text tells."""
    parts = [_element(line) or _plain(line) for line in step.observation.splitlines()]
    elements = [part for part in parts if isinstance(part, Element)]
    texts = [part.name if isinstance(part, Element) else part for part in parts]
    page_text = re.sub(r"\s+([,.;:!?)])", r"\1", " ".join(" ".join(texts).split()))
    return Observation(step.observation, step.url, texts[0] if texts else "", page_text, tuple(elements))


def plain_lines(step: Step | FinalState) -> list[str]:
    """Return the lines of a state's page that are no element's."""
    return [_plain(line) for line in step.observation.splitlines() if _element(line) is None]


def action_of(step: Step) -> Acted:
    """Return what a step did: the kind of action, the real name of its element, its argument; "" for nothing."""
    call, argument = _CALL.search(step.action_text), _ARGUMENT.search(step.action_text)
    if call is None or step.parse_error is not None or step.refused:
        return Acted("")
    kind = (call[2] or call[1]).lower().replace(" ", "_")
    said = argument[1].replace('\\"', '"') if argument else None
    name = (step.element or "").partition(" ")[2]
    return Acted("select" if kind == "select_dropdown_option" else kind, name, said)


def with_milestones(episode: Trajectory, done: npt.NDArray[np.bool_]) -> Trajectory:
    """Return the episode with (T + 1, K) milestones in place of its own."""
    *before, last = [tuple(bool(value) for value in row) for row in done]
    steps = tuple(replace(step, milestones=row) for step, row in zip(episode.steps, before, strict=True))
    return replace(episode, steps=steps, final_milestones=last)


def _element(line: str) -> Element | None:
    """Return the element that has this line of a page, None for other text: ``role name[ = value][ (options)] id``.

    It is taken apart from its ends, which costs no more the longer a page's words are.
    """
    head, _, number = line.rpartition(" ")
    if not (number.isdecimal() and len(number) <= _LONGEST_ID):
        return None
    options: tuple[str, ...] = ()
    if head.startswith("select ") and head.endswith(")"):
        before, opened, listed = head.removesuffix(")").partition(" (")
        head, options = (before, tuple(listed.split(" | "))) if opened else (head, ())
    role, spaced, rest = head.partition(" ")
    if not (spaced and role.isascii() and role.isalpha() and role.islower()):
        return None
    name, _, value = rest.partition(" = ")
    return Element(int(number), role, name, value, options)


def _plain(line: str) -> str:
    return line.lstrip("@# ").replace(" | ", " ")  # the cells of a row
