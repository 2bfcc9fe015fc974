"""The map's atoms: places, and the user's lists of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from sites.chains.atom import Atom
from sites.checks import Check, Target, both
from sites.experts import Actions
from sites.map import sampling, skills, words
from sites.map.checks import at, equals, holds, list_path, noted, reported, saved, wrote_note
from sites.map.data import MapData
from sites.task_template import Parameters, drawn, one_of, together


def _listed(data: MapData, rng: random.Random) -> Parameters:
    """Draw a list and one of its places."""
    found = sampling.one_listed(data, rng)
    return {"list": found["list"], "place": found["first"]}


class _OfPlace(Atom):
    """About one place, by its name and town."""

    place: str = drawn(sampling.place)

    def things(self, data: MapData) -> Iterator[str]:
        yield self.place


class SavePlace(_OfPlace, name="map.save_place", length=4):
    wordings = (
        "Save {place} to the list {list}",
        "Put {place} on the list {list}",
        "In the list {list}, save {place}",
        "The list {list} should have {place}: save it there",
        "Add {place} to your list {list}",
        "Let {place} be one of the list {list}",
    )
    list: str = drawn(sampling.some_list)

    def expert(self) -> Actions:
        return (yield from skills.save_place(self.place, self.list))

    def path(self, data: MapData) -> str:
        return f"{data.labelled(self.place).path}/save"

    def things(self, data: MapData) -> Iterator[str]:
        yield from (self.place, self.list)

    def done(self, data: MapData) -> Check:
        return saved(data.labelled(self.place), self.list)

    def wanted(self, data: MapData) -> tuple[Target, ...]:
        return (holds(self.list, data.labelled(self.place)),)


class WriteNote(_OfPlace, name="map.write_note", length=4):
    wordings = (
        'Add the note "{text}" to {place}',
        'Write the note "{text}" on {place}',
        'On {place}, note "{text}"',
        'For {place}, save "{text}" as your note',
        'Let your note on {place} be "{text}"',
        'Note "{text}" about {place}',
    )
    text: str = one_of(words.NOTES)

    def expert(self) -> Actions:
        return (yield from skills.note(self.place, self.text))

    def path(self, data: MapData) -> str:
        return f"{data.labelled(self.place).path}/note"

    def done(self, data: MapData) -> Check:
        return wrote_note(data.labelled(self.place), self.text)

    def wanted(self, data: MapData) -> tuple[Target, ...]:
        return (noted(data.labelled(self.place), self.text),)


class Report(_OfPlace, name="map.report", length=6):
    wordings = (
        'Report the error {problem} about {place} with the details "{details}"',
        'About {place}, report {problem}: "{details}"',
        'With the details "{details}", report {problem} about {place}',
        'Tell the map about {place}: {problem}, "{details}"',
        'Let the map know of the error {problem} at {place}; the details are "{details}"',
        'Something is wrong with {place}: report {problem} and write "{details}"',
    )
    problem: str = one_of(words.PROBLEMS)
    details: str = one_of(words.DETAILS)

    def expert(self) -> Actions:
        return (yield from skills.report(self.place, self.problem, self.details))

    def path(self, data: MapData) -> str:
        return f"{data.labelled(self.place).path}/report"

    def done(self, data: MapData) -> Check:
        return skills.report.reached(self.place, self.problem, self.details)

    def wanted(self, data: MapData) -> tuple[Target, ...]:
        return (reported(data.labelled(self.place), self.problem, self.details),)


class MakeList(Atom, name="map.make_list", length=3):
    wordings = (
        'Make a list called "{list}"',
        'Make the new list "{list}"',
        'Among your lists, make one called "{list}"',
        'You need a list "{list}": make it',
        'Start a list with the name "{list}"',
        'Let there be a list called "{list}"',
    )
    list: str = one_of(words.LIST_NAMES)

    def expert(self) -> Actions:
        return (yield from skills.make_list(self.list))

    def path(self, data: MapData) -> str:
        return "/lists"

    def things(self, data: MapData) -> Iterator[str]:
        yield self.list

    def done(self, data: MapData) -> Check:
        return both(at("/lists"), skills.make_list.reached(self.list))

    def wanted(self, data: MapData) -> tuple[Target, ...]:
        return (equals(list_path(self.list), "#name", self.list),)


class _OfList(Atom):
    """About one of the user's lists."""

    list: str = drawn(sampling.some_list)

    def things(self, data: MapData) -> Iterator[str]:
        yield self.list


class RenameList(_OfList, name="map.rename_list", length=4):
    wordings = (
        'Rename the list {list} to "{name}"',
        'Call the list {list} "{name}"',
        'Give the list {list} the name "{name}"',
        'The list {list} needs another name: "{name}"',
        'Let "{name}" be the name of the list {list}',
        'From {list} to "{name}": rename this list',
    )
    name_: str = one_of(words.LIST_NAMES)

    def expert(self) -> Actions:
        return (yield from skills.rename_list(self.list, self.name_))

    def path(self, data: MapData) -> str:
        return f"{list_path(self.list)}/rename"

    def things(self, data: MapData) -> Iterator[str]:
        yield from (self.list, self.name_)

    def done(self, data: MapData) -> Check:
        return at(list_path(self.name_))

    def wanted(self, data: MapData) -> tuple[Target, ...]:
        return (equals(list_path(self.name_), "#name", self.name_), equals(list_path(self.list), "#name", ""))


class DeleteList(_OfList, name="map.delete_list", length=4):
    wordings = (
        "Delete the list {list}",
        "Remove the list {list} from your lists",
        "You do not need the list {list}: delete it",
        "From your lists, delete {list}",
        "Let the list {list} be gone",
        "Open the list {list} and delete it",
    )

    def expert(self) -> Actions:
        return (yield from skills.delete_list(self.list))

    def path(self, data: MapData) -> str:
        return f"{list_path(self.list)}/delete"

    def done(self, data: MapData) -> Check:
        return skills.delete_list.reached(self.list)

    def wanted(self, data: MapData) -> tuple[Target, ...]:
        return (equals(list_path(self.list), "#name", ""),)


class RemovePlace(Atom, name="map.remove_place", length=3):
    wordings = (
        "Remove {place} from the list {list}",
        "Take {place} off the list {list}",
        "From the list {list}, remove {place}",
        "The list {list} should not have {place}: remove it",
        "Strike {place} from your list {list}",
        "Let {place} be no part of the list {list}",
    )
    list: str = together(_listed)
    place: str

    def expert(self) -> Actions:
        return (yield from skills.remove(self.list, self.place))

    def path(self, data: MapData) -> str:
        return f"{list_path(self.list)}/remove/{data.labelled(self.place).place_id}"

    def things(self, data: MapData) -> Iterator[str]:
        yield from (self.place, self.list)

    def done(self, data: MapData) -> Check:
        return both(at(f"{list_path(self.list)}*"), skills.remove.reached(self.list, self.place))

    def wanted(self, data: MapData) -> tuple[Target, ...]:
        kept = equals(list_path(self.list), "#count", f"{len(data.lists[self.list]) - 1} places")
        return (kept, equals(list_path(self.list), f'form[action="{self.path(data)}"]', ""))
