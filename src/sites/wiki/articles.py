"""Articles from a seed: towns and places as the map has them, people, and the shop's materials.

Owns ``build``. Years of birth and of opening are all different, so that "first" names one article.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

from sites.kept import SEEDS_KEPT
from sites.map import places as map_places
from sites.map.data import MapData, Place
from sites.shop import data as shop
from sites.wiki import words
from sites.wiki.data import Article, Revision, WikiData

_REGION = "Westland"
_LIVING = 0.4
_ARCHITECT_UNKNOWN = 0.2


@lru_cache(maxsize=SEEDS_KEPT)
def build(seed: int) -> WikiData:
    """Generate the encyclopedia of this seed, some 160 articles, over the map and the shop of the same seed."""
    rng = random.Random(f"wiki/{seed}")
    region, goods = map_places.build(seed), shop.build(seed)
    described = [place for place in region.places.values() if place.kind in words.PLURALS]
    people = _people(rng, list(region.towns))
    architects = [name for name, facts in people.items() if facts["Occupation"] == "architect"]
    built = {place.label: rng.choice(architects) for place in described if rng.random() > _ARCHITECT_UNKNOWN}
    works: dict[str, list[str]] = defaultdict(list)
    for place in described:
        if place.label in built:
            works[built[place.label]].append(_title(region, place))
    years = rng.sample(range(1805, 2015), len(described))
    articles = [
        *_towns(rng, region, people),
        *(_place(rng, region, p, built.get(p.label, ""), year) for p, year in zip(described, years, strict=True)),
        *(_person(rng, name, facts, works[name]) for name, facts in people.items()),
        *_materials(rng, goods, list(region.towns)),
        *_kinds(rng, region, described),
    ]
    return WikiData({article.title: article for article in articles})


def _title(region: MapData, place: Place) -> str:
    return place.name if len(region.named(place.name)) == 1 else f"{place.name} ({place.town})"


def _people(rng: random.Random, towns: list[str]) -> dict[str, dict[str, str]]:
    """Return the facts of each person by name."""
    pairs = [f"{first} {last}" for first in words.FIRST_NAMES for last in words.LAST_NAMES]
    names = iter(rng.sample(pairs, sum(words.OCCUPATIONS.values())))
    years = iter(rng.sample(range(1850, 1990), sum(words.OCCUPATIONS.values())))
    people = {}
    for occupation, count in words.OCCUPATIONS.items():
        for number in range(count):
            name, born = next(names), next(years)
            facts = {"Born": str(born), "Birthplace": rng.choice(towns), "Occupation": occupation}
            if rng.random() > _LIVING and born < 1950:
                facts["Died"] = str(born + rng.randint(45, 70))
            if occupation == "mayor":
                facts["Town"] = towns[number]
            people[name] = facts
    return people


def _towns(rng: random.Random, region: MapData, people: dict[str, dict[str, str]]) -> Iterable[Article]:
    founded, inhabitants = rng.sample(range(1100, 1700), 10), rng.sample(range(21_000, 98_000), 10)
    mayors = {facts["Town"]: name for name, facts in people.items() if "Town" in facts}
    for number, town in enumerate(region.towns):
        facts = {
            "Region": _REGION,
            "Founded": str(founded[number]),
            "Population": str(inhabitants[number]),
            "Mayor": mayors[town],
        }
        text = (f"{town} is a town in {_REGION}.", f"It was founded in {founded[number]}.")
        yield Article(town, "town", text, facts, (mayors[town],), ("Towns",), _history(rng))


def _place(rng: random.Random, region: MapData, place: Place, architect: str, year: int) -> Article:
    facts = {"Town": place.town, "Address": f"{place.number} {place.street}", "Opened": str(year)}
    if architect:
        facts["Architect"] = architect
    plural = words.PLURALS[place.kind]
    text = (f"{place.name} is a {place.kind} in {place.town}.", f"It opened in {year}.")
    links = (place.town, place.kind.capitalize(), *([architect] if architect else []))
    alike = [other for other in region.places.values() if (other.kind, other.town) == (place.kind, place.town)]
    categories = (plural, *([f"{plural} in {place.town}"] if len(alike) > 1 else []))
    return Article(_title(region, place), "place", text, facts, links, categories, _history(rng))


def _person(rng: random.Random, name: str, facts: dict[str, str], works: list[str]) -> Article:
    occupation, place = facts["Occupation"], facts["Birthplace"]
    article = "an" if occupation[0] in "aeiou" else "a"
    text = (f"{name} {'was' if 'Died' in facts else 'is'} {article} {occupation} from {place}.",)
    categories = (f"{occupation.capitalize()}s", f"People from {place}")
    return Article(name, "person", text, facts, (place, *works), categories, _history(rng))


def _materials(rng: random.Random, goods: shop.ShopData, towns: list[str]) -> Iterable[Article]:
    for material, sort in words.SORTS.items():
        uses = sorted({p.name.split()[-1].lower() for p in goods.products.values() if material in p.name.split()})
        town = rng.choice(towns)
        since = rng.randint(1200, 1799)
        facts = {"Sort": sort, "Made in": town, "Known since": str(since), "Used for": uses[0] if uses else "building"}
        text = (f"{material} is a {sort}.", f"Shops sell it as {', '.join(uses[:3]) or 'raw material'}.")
        yield Article(material, "material", text, facts, (town,), ("Materials",), _history(rng))


def _kinds(rng: random.Random, region: MapData, described: list[Place]) -> Iterable[Article]:
    for kind, plural in words.PLURALS.items():
        members = [place for place in described if place.kind == kind]
        facts = {"Number": str(len(members)), "Towns": str(len({place.town for place in members}))}
        text = (f"There are {plural.lower()} in many towns.",)
        links = tuple(dict.fromkeys(place.town for place in members))
        yield Article(kind.capitalize(), "kind", text, facts, links, ("Kinds of places",), _history(rng))


def _history(rng: random.Random) -> tuple[Revision, ...]:
    """Return three to nine changes by different editors in turn, latest first; the first version is the last."""
    count = rng.randint(3, 9)
    years = sorted(rng.sample(range(2012, 2024), count), reverse=True)
    editors = rng.sample(words.EDITORS, count)
    comments = [rng.choice(words.COMMENTS) for _ in range(count - 1)] + [words.FIRST_COMMENT]
    days = [f"{rng.randint(1, 28)} {rng.choice(words.MONTHS)} {year}" for year in years]
    return tuple(Revision(*change) for change in zip(days, editors, comments, strict=True))
