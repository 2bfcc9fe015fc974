"""Finding places by words.

Owns matching and the correction of mistyped words. A search also shows what only nearly matches, in
alphabetical order within a page, so that the place that was meant is on the first page but not
always at its top.
"""

from __future__ import annotations

import difflib
from functools import lru_cache

from sites.kept import SEEDS_KEPT
from sites.map.data import MapData, Place

PER_PAGE = 6
MAX_RESULTS = 24


def search(data: MapData, query: str) -> list[Place]:
    """Return the places that share all words but one with ``query``, the best on the first page."""
    words = set(query.lower().replace(",", " ").split())
    needed = max(1, len(words) - 1)
    scored = [(len(words & _words(place)), place) for place in data.places.values()]
    found = [(score, place) for score, place in scored if words and score >= needed]
    # Of equal matches those of the very name come first, so that namesakes stand on one page.
    found.sort(key=lambda pair: (-pair[0], not set(pair[1].name.lower().split()) <= words, pair[1].label))
    best = [place for _, place in found[:MAX_RESULTS]]
    pages = [best[i : i + PER_PAGE] for i in range(0, len(best), PER_PAGE)]
    return [place for page in pages for place in sorted(page, key=lambda p: (p.name, p.town))]


def correction(data: MapData, query: str) -> str:
    """Return the query with mistyped words corrected, "" where there is nothing to correct."""
    known = _vocabulary(data)
    words = query.lower().replace(",", " ").split()
    corrected = [
        word if word in known else next(iter(difflib.get_close_matches(word, known, 1)), word) for word in words
    ]
    return " ".join(corrected).title() if corrected != words else ""


def _words(place: Place) -> set[str]:
    return set(f"{place.name} {place.kind} {place.town}".lower().split())


@lru_cache(maxsize=SEEDS_KEPT)
def _vocabulary(data: MapData) -> tuple[str, ...]:
    return tuple(sorted({word for place in data.places.values() for word in _words(place)}))
