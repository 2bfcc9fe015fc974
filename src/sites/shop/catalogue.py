"""The shop's goods: what products are, and how several hundred of them are made from a seed.

Owns ``Product``, ``Review`` and ``Category`` and their generation. Invariants: prices are whole dollars
of two digits and unique within a category, so cheapest and dearest are unique; exactly one product of a
category has five stars in every review; all words come from short lists, so that a small vocabulary
reads the whole shop.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property

STYLES = ("Tall", "Mini", "Royal", "Plain", "Nova", "Swift", "Rustic", "Lucky")
MATERIALS = ("Oak", "Steel", "Glass", "Wool", "Stone", "Cork", "Linen", "Copper")
NOUNS = ("Lamp", "Rug", "Chair", "Clock", "Mug", "Kettle", "Tray", "Shirt", "Hat", "Bag", "Game", "Pen")
SIZED = frozenset({"Rug", "Shirt", "Hat", "Bag"})
KINDS = ("Home", "Office", "Garden", "Travel", "Kids", "Sport")
COLOURS = ("Blue", "Red", "Green", "Black", "White", "Gold")
SIZES = ("Small", "Medium", "Large")
LARGE_EXTRA = 4
"""What the largest size costs on top of the product's price, dollars."""

_PER_SIDE = 6
_REVIEWERS = ("Ann", "Ben", "Cora", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivan", "June")
_TITLES = {
    5: ("Love it", "Perfect gift", "Best buy"),
    4: ("Very good", "Good value", "Works well"),
    3: ("It is fine", "Not bad", "As expected"),
    2: ("Not for me", "Too small", "Came late"),
    1: ("Broke soon", "Sent it back", "Poor quality"),
}
_TEXTS = (
    "I use it every day.",
    "The colour is as shown.",
    "My family likes it.",
    "It came in two days.",
    "I would buy it again.",
    "It looks better at home.",
)


@dataclass(frozen=True, slots=True)
class Review:
    """One customer's review, 1 to 5 stars."""

    author: str
    stars: int
    title: str
    text: str


@dataclass(frozen=True)
class Product:
    """One product; ``sizes`` is empty where size makes no sense, ``popularity`` ranks it (higher first)."""

    slug: str
    name: str
    category: str
    kind: str
    price: int
    stock: int
    popularity: int
    colours: tuple[str, ...]
    sizes: tuple[str, ...]
    reviews: tuple[Review, ...]

    @cached_property
    def words(self) -> frozenset[str]:
        """The lower-case words of the name, for searching."""
        return frozenset(self.name.lower().split())

    def price_of(self, size: str) -> int:
        """Return the price in dollars of one piece of this size ("" where there are no sizes)."""
        return self.price + (LARGE_EXTRA if size == SIZES[-1] else 0)


@dataclass(frozen=True, slots=True)
class Category:
    """One category with its subcategories (``kinds``) and its products, most popular first."""

    slug: str
    name: str
    kinds: tuple[str, ...]
    products: tuple[Product, ...]


def build_categories(rng: random.Random) -> tuple[Category, ...]:
    """Return all categories, each with 36 products whose names differ in style or material."""
    return tuple(_category(noun, rng) for noun in NOUNS)


def mean_stars(reviews: tuple[Review, ...]) -> float:
    """Return the mean number of stars to one decimal; 0.0 without reviews."""
    return round(sum(r.stars for r in reviews) / len(reviews), 1) if reviews else 0.0


def _category(noun: str, rng: random.Random) -> Category:
    kinds = tuple(sorted(rng.sample(KINDS, 3)))
    colours = tuple(rng.sample(COLOURS, 4))
    names = [f"{s} {m} {noun}" for s in rng.sample(STYLES, _PER_SIDE) for m in rng.sample(MATERIALS, _PER_SIDE)]
    rng.shuffle(names)
    prices = rng.sample(range(10, 100), len(names))
    champion = rng.randrange(len(names))
    products = tuple(
        Product(
            slug=name.lower().replace(" ", "-"),
            name=name,
            category=f"{noun.lower()}s",
            kind=rng.choice(kinds),
            price=price,
            stock=0 if rng.random() < 0.04 else rng.randint(10, 60),
            popularity=len(names) - rank,
            colours=colours,
            sizes=SIZES if noun in SIZED else (),
            reviews=_reviews(rng, champion=rank == champion),
        )
        for rank, (name, price) in enumerate(zip(names, prices, strict=True))
    )
    return Category(slug=f"{noun.lower()}s", name=f"{noun}s", kinds=kinds, products=products)


def _reviews(rng: random.Random, *, champion: bool) -> tuple[Review, ...]:
    count = rng.randint(3, 9)
    stars = (
        [5] * count if champion else [*rng.choices((1, 2, 3, 4, 5), (1, 1, 2, 4, 4), k=count - 1), rng.randint(1, 4)]
    )
    rng.shuffle(stars)
    return tuple(Review(rng.choice(_REVIEWERS), n, rng.choice(_TITLES[n]), rng.choice(_TEXTS)) for n in stars)
