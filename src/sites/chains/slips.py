"""Demonstrations of chains as people give them: each atom may go wrong, and mostly the others are done all the same.

Owns ``Slip`` and when one happens. Invariants: the same task, seed and quality give the same demonstration; an atom's
share of slips, its habitual slip and how that goes are fixed by the quality's seed; whatever slips but a detour makes
the chain fail, and all but a stop leave the rest of it to be done; a demonstration ends with an exit within the task's
steps and never names what is not on the page.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count

from records.environment import Observation
from records.episodes import Task
from sites.chains.chain import Chain, approach
from sites.choices import element_of, is_option, is_there, rival_of, rivals_of
from sites.experts import Expert, Intent
from sites.quality import Quality

_WRONG_AT_A_CHOICE = 0.6
_LEAVES_CHOICE_OUT = 0.5
_ALL = 99
"""More actions than any atom has."""


class Slip(StrEnum):
    """What goes wrong with one atom."""

    WRONG = "wrong"
    """Another item, option or number is taken, a choice is left out, or at last the last action."""
    SKIPPED = "skipped"
    SWAPPED = "swapped"
    """It is done after the next one."""
    STOPPED = "stopped"
    """In the middle of it the episode ends."""
    DETOUR = "detour"
    """A wandering click before it, and the way back; the atom is done all the same."""


_SHARES = {Slip.WRONG: 60, Slip.SKIPPED: 20, Slip.SWAPPED: 10, Slip.STOPPED: 10}
_Actions = Generator[Intent, Observation, object]
_Part = Generator[Intent, Observation, Observation | None]
"""Part of a demonstration: returns the page on which it ends, None where none was seen yet."""


def demonstrate_chain(task: Task, seed: int, quality: Quality) -> Expert:
    """Return a demonstration of a chain, made imperfect as ``quality`` says."""
    rng, chain = random.Random(f"demonstration/{seed}/{task.task_id}"), Chain.filled(task.parameters)
    part = _done(chain, plan_slips(chain, rng, quality), rng)

    def demonstration() -> Expert:
        seen: Observation | None = None
        for _ in range(task.max_steps - 1):
            try:
                intent = next(part) if seen is None else part.send(seen)
            except StopIteration:
                break
            seen = yield intent
        yield Intent("exit", argument="done")

    return demonstration()


@dataclass(frozen=True, slots=True)
class PlannedSlip:
    """What goes wrong with an atom, None for nothing, and how: as ``rng`` draws, for a habit always the same."""

    slip: Slip | None
    rng: random.Random
    habitual: bool = False

    def rival(self, intent: Intent, seen: Observation) -> Intent | None:
        """Return what is taken instead: by habit the first on the page, None where there is no other."""
        return next(iter(rivals_of(intent, seen)), None) if self.habitual else rival_of(intent, seen, self.rng)


def plan_slips(chain: Chain, rng: random.Random, quality: Quality) -> tuple[PlannedSlip, ...]:
    """Draw what goes wrong with each atom; the last one cannot be swapped."""
    plan = [_planned(atom.name, rng, quality) for atom in chain.atoms]
    last = plan[-1]
    return (*plan[:-1], replace(last, slip=Slip.WRONG) if last.slip is Slip.SWAPPED else last)


def _planned(atom: str, rng: random.Random, quality: Quality) -> PlannedSlip:
    if rng.random() >= quality.rate(atom):
        return PlannedSlip(None, rng)
    if rng.random() < quality.detours:
        return PlannedSlip(Slip.DETOUR, rng)
    habitual = rng.random() < quality.habitual
    source = random.Random(f"habit/{quality.seed}/{atom}") if habitual else rng
    return PlannedSlip(source.choices(list(_SHARES), list(_SHARES.values()))[0], source, habitual)


def _done(chain: Chain, plan: Sequence[PlannedSlip], rng: random.Random) -> _Part:
    """Do the chain's atoms as planned."""
    site, at_home, wandered = chain.sites[0], True, False
    seen: Observation | None = None
    for index, planned in _ordered(plan):
        atom, slip = chain.atoms[index], planned.slip
        if slip is Slip.SKIPPED:
            continue
        if slip is Slip.DETOUR and seen is not None and not wandered:
            seen, wandered = (yield from _wander(seen, rng)), True
        seen = yield from _carefully(approach(atom, site, at_home=at_home), seen)
        site, at_home = atom.site, False
        if slip is Slip.STOPPED:
            return (yield from _carefully(atom.expert(), seen, most=planned.rng.randrange(atom.length)))
        if slip is Slip.WRONG:
            seen = yield from _carelessly(atom.expert(), seen, atom.length - 1, planned)
        else:
            seen = yield from _carefully(atom.expert(), seen)
    return seen


def _ordered(plan: Sequence[PlannedSlip]) -> Sequence[tuple[int, PlannedSlip]]:
    """Return the atoms in the order in which they are done; one that is swapped and the next one are done well."""
    order, index = list[tuple[int, PlannedSlip]](), 0
    while index < len(plan):
        planned = plan[index]
        if planned.slip is Slip.SWAPPED:
            well = replace(planned, slip=None)
            order += [(index + 1, well), (index, well)]
            index += 2
        else:
            order.append((index, planned))
            index += 1
    return order


def _wander(seen: Observation, rng: random.Random) -> _Part:
    """Follow a link of the page, and come back."""
    links = [element for element in seen.elements if element.role == "link"]
    link = rng.choice(links)
    nth = [element.element_id for element in links if element.name == link.name].index(link.element_id)
    elsewhere = yield Intent("click", link.name, "link", nth)
    # A link to the page itself leaves no trace in the history to go back over.
    return elsewhere if elsewhere.url == seen.url else (yield Intent("go_backward"))


def _carefully(actions: _Actions, seen: Observation | None, most: int = _ALL, *, begun: Intent | None = None) -> _Part:
    """Follow the actions, at most so many, as far as what they name is there; ``begun`` is what they ask for now."""
    try:
        intent = begun or next(actions)
        for _ in range(most):
            if seen and not is_there(intent, seen):
                break
            seen = yield intent
            intent = actions.send(seen)
    except (LookupError, StopIteration):
        pass  # the actions are over, or have lost their way after an earlier slip, as a person would
    return seen


def _carelessly(actions: _Actions, seen: Observation | None, last: int, planned: PlannedSlip) -> _Part:
    """Follow the actions and go wrong at one choice; who has not by the ``last`` action leaves that one out."""
    rng = planned.rng
    try:
        intent = next(actions)
        for index in count():
            if seen and intent.rivals and (rng.random() < _WRONG_AT_A_CHOICE or index == last):
                rival, left_out = planned.rival(intent, seen), _differs(intent, seen)
                if left_out and (rival is None or rng.random() < _LEAVES_CHOICE_OUT):
                    intent = actions.send(seen)
                elif rival:
                    intent = rival
                if left_out or rival:
                    break
            if index == last or (seen and not is_there(intent, seen)):
                return seen
            seen = yield intent
            intent = actions.send(seen)
    except (LookupError, StopIteration):
        return seen
    return (yield from _carefully(actions, seen, begun=intent))


def _differs(intent: Intent, seen: Observation) -> bool:
    """Whether this is a choice that can be left out, and is wrong then."""
    element = element_of(intent, seen)
    return is_option(intent) and element is not None and element.value != intent.argument
