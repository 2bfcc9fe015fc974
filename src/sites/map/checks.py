"""What the map's tasks are judged by, beside what all sites share (``sites.checks``).

Pages are addressed by canonical URLs, and parts of pages by the ids that the templates give them (``#places``,
``#note``, ``#total``, ...). Places in lists are known by their postcodes, which no two of them share.
"""

from __future__ import annotations

from sites.checks import Check, PagesOf, Step, Target, both, has, shows
from sites.map.data import Place
from sites.map.sampling import MODES
from sites.map.state import slug

_MAP = PagesOf("map")
SEARCH_BOX: Step = ("see a search box", has("Search", role="searchbox"))
at, ends_at, equals, includes = _MAP.at, _MAP.ends_at, _MAP.equals, _MAP.includes


def holds(name: str, *places: Place) -> Target:
    """Expect these places in the list."""
    return includes(list_path(name), "#places", *(place.postcode for place in places))


def counts(name: str, number: int) -> Target:
    """Expect so many places in the list."""
    return equals(list_path(name), "#count", f"{number} places")


def noted(place: Place, text: str) -> Target:
    """Expect this note on the place."""
    return equals(place.path, "#note", text)


def reported(place: Place, problem: str, details: str, css: str = ".report") -> Target:
    """Expect this error report, the latest one unless ``css`` names another."""
    return includes("/reports", css, place.label, f"{problem}: {details}")


def list_path(name: str) -> str:
    """The path of a list."""
    return f"/lists/{slug(name)}"


def tour_path(name: str, how: str) -> str:
    """The path of the shortest tour over a list."""
    return f"{list_path(name)}/tour?mode={MODES[how]}&order=Shortest"


def fields(**values: str) -> Check:
    """These form fields hold these values; underscores in names stand for spaces."""
    return both(*(has(name.replace("_", " "), value) for name, value in values.items()))


def found(place: Place) -> Check:
    """The agent sees search results with a place of this name."""
    return both(at("/search*"), has(place.name, role="link"))


def opening(place: Place) -> tuple[Step, Step]:
    """Milestones on the way to a place."""
    return ("find the place", found(place)), ("open the place", at(f"{place.path}*"))


def saved(place: Place, name: str) -> Check:
    """The agent has just put the place into the list."""
    return both(at(place.path), shows(f"Saved to {name}."))


def wrote_note(place: Place, text: str) -> Check:
    """The agent has just written this note."""
    return both(at(place.path), shows("Your note was saved.", text))
