"""What passes between an agent and the world it acts in: observations, actions and verdicts.

Owns ``Element``, ``Observation``, ``Action`` and ``Verdict``. Invariant: records are immutable and plain data, so that
judges, sites and environments share them without knowing each other.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Element:
    """One element the agent may act on; ``element_id`` is fresh in every observation, from 0 in document order."""

    element_id: int
    role: str
    name: str
    value: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """What the agent sees: ``text`` goes into the prompt, ``elements`` resolves ids and names.

    ``url`` is canonical: hosts are replaced by the site's placeholder (``__SHOP__/cart``), so that
    records do not depend on ports or sessions. ``page_text`` is the whole visible text with white
    space collapsed, for milestone checks. ``feedback`` tells the agent what its last action did not do, and
    ``refused`` says whether that is the action itself: it was not carried out.
    ``intent`` is there on an episode's first observation only, and only where the environment itself makes the
    instruction up: it then takes the place of the task's.
    """

    text: str
    url: str
    title: str
    page_text: str
    elements: tuple[Element, ...]
    feedback: str | None = None
    intent: str | None = None
    refused: bool = False

    def find(self, name: str, role: str | None = None, nth: int = 0) -> Element:
        """Return the ``nth`` element with this exact name (and role); raise ``LookupError`` naming what is there."""
        hits = [e for e in self.elements if e.name == name and role in (None, e.role)]
        if nth >= len(hits):
            seen = ", ".join(f"{e.role} {e.name!r}" for e in self.elements)
            raise LookupError(f"no element {name!r} (role {role}, nth {nth}) on {self.url}; there are: {seen}")
        return hits[nth]


@dataclass(frozen=True, slots=True)
class Action:
    """One parsed action of the grammar.

    ``kind`` is one of ``environments.interface.grammar.KINDS`` (``click``, ``type``, ``search``, ``select``,
    ``hover``, ``drag``, ``right_click``, ``press_enter``, ``press_key``, ``scroll_up``, ``scroll_down``, ``wait``,
    ``switch_tab``, ``go_backward``, ``go_forward``, ``exit``). ``argument`` is the text typed, the
    option chosen, the keys, the number of the element that is dragged to, the tab or the exit message;
    ``element_id`` the target. ``comment`` is what the ``# Element:`` line named, ``note`` what the ``# Note:`` lines
    keep of the page for later: past pages leave the
    prompt, past actions stay in it.
    """

    kind: str
    argument: str | None = None
    element_id: int | None = None
    comment: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """An evaluator's judgement: ``outcome`` in {0.0, 1.0} and ``evidence``, one line per rule that was checked."""

    outcome: float
    evidence: tuple[str, ...] = ()
