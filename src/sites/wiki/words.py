"""The encyclopedia's vocabulary: names of people, what they did, materials, editors.

Owns word lists only; they are kept small on purpose.
"""

from __future__ import annotations

FIRST_NAMES = (
    "Ada", "Bruno", "Clara", "David", "Edith", "Frank", "Gerda", "Henry", "Irma", "Jacob", "Karla", "Louis", "Mary",
    "Nora", "Otto", "Paul", "Rita", "Simon", "Thea", "Viktor",
)  # fmt: skip
LAST_NAMES = ("Adler", "Baker", "Cole", "Dunn", "Evans", "Fisher", "Gray", "Hall", "Irving", "Jones", "Keller", "Lane")
OCCUPATIONS = {"architect": 18, "mayor": 5, "painter": 12, "writer": 12, "scientist": 13}
"""How many people of each occupation there are; every town has its own mayor."""
EDITORS = ("Alma", "Boris", "Chris", "Dora", "Elias", "Fritz", "Greta", "Hugo", "Ines", "Julia")
COMMENTS = ("Fixed a date", "Added a link", "Shorter text", "Spelling", "Added a category", "New facts")
FIRST_COMMENT = "First version"
MONTHS = ("January", "March", "April", "May", "July", "August", "October", "December")
SORTS = {
    "Oak": "wood", "Steel": "metal", "Glass": "mineral", "Wool": "fibre", "Stone": "mineral", "Cork": "wood",
    "Linen": "fibre", "Copper": "metal",
}  # fmt: skip
"""What sort of material each of the shop's materials is."""
PLURALS = {
    "museum": "Museums", "library": "Libraries", "theatre": "Theatres", "cinema": "Cinemas", "park": "Parks",
    "school": "Schools", "university": "Universities", "hospital": "Hospitals", "station": "Stations",
    "airport": "Airports",
}  # fmt: skip
"""Kinds of places that have articles, and the names of their categories."""
