"""When an episode ends because it stands still: its agent repeats itself, or says what is no action.

Owns the rule. It is that of WebArena's harness but for one point: there two texts typed into one field are the same
action. Must not import torch or ray.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from records.cycles import same_ending
from records.environment import Action, Element

_TYPED = frozenset({"type", "search"})
"""Kinds that are the same also with others between them: who types a text, leaves and types it again gets nowhere."""

_Said = tuple[str, str | None, tuple[str, str] | int | None]
"""Kind, argument, and the element by role and name, because numbers differ from page to page."""


@dataclass(slots=True)
class Standstill:
    """Hears all replies of one episode; a limit of 0 is none."""

    max_repeats: int
    max_unread: int
    _said: list[_Said | None] = field(default_factory=list)

    def hear(self, action: Action | None, element: Element | None) -> bool:
        """Take the next reply, None for one that is no action, with the element that it names; return whether it ends.

        It does when it is the ``max_unread``-th in a row that is no action, or the ``max_repeats``-th same action: in a
        row, but for what is typed.
        """
        said = None if action is None else _said(action, element)
        self._said.append(said)
        limit = self.max_unread if said is None else self.max_repeats
        everywhere = said is not None and said[0] in _TYPED
        return 0 < limit <= (self._said.count(said) if everywhere else same_ending(self._said))


def _said(action: Action, element: Element | None) -> _Said:
    named = (element.role, element.name) if element else action.element_id
    return action.kind, action.argument, named
