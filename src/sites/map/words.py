"""The map's vocabulary: what towns, streets and places are called, and what visitors may write.

Owns word lists only. They are kept small on purpose, and towns share the names of streets and of places,
so that a name alone often means several things.
"""

from __future__ import annotations

TOWNS = ("Elmford", "Stonebay", "Northam", "Riverton")
"""Towns on the mainland, in the order in which the region was laid out."""
ISLAND = "Gullholm"
"""A small town without cars, behind a footbridge."""

STREETS = (
    "Mill Street", "Oak Road", "High Street", "Church Lane", "Park Avenue", "Station Road", "King Street",
    "Queen Street", "Bridge Road", "School Lane", "Rose Street", "Hill Road", "Lake Street", "Elm Lane", "Forest Road",
    "Harbour Street",
)  # fmt: skip

PREFIXES = ("Blue", "Red", "Green", "Silver", "Golden", "Old", "New", "Corner", "River", "Garden", "Castle", "Market")
"""First words of the names of places; all towns draw from them."""

KINDS: dict[str, tuple[int, int]] = {
    "cafe": (6, 2), "hotel": (4, 2), "museum": (3, 1), "park": (3, 1), "pharmacy": (3, 1), "bank": (3, 0),
    "school": (3, 0), "supermarket": (3, 1), "library": (2, 0), "cinema": (2, 0), "theatre": (2, 0), "station": (1, 0),
    "hospital": (1, 0), "university": (1, 0), "airport": (1, 0),
}  # fmt: skip
"""Kinds of places, with how many of them a town and the island have."""
CIVIC = ("station", "hospital", "university", "airport")
"""Kinds of which a town has one, called after the town."""
FEW = {"university": ("Elmford", "Northam"), "airport": ("Stonebay",)}
"""Kinds that only these towns have."""
ALWAYS_OPEN = ("park", "station", "hospital", "airport", "hotel")

PROBLEMS = ("Wrong address", "Wrong phone", "Wrong hours", "Closed for good")
"""What an error report may say."""
DETAILS = (
    "I was there today",
    "A friend told me",
    "I called them",
    "There is a sign",
    "It has moved",
    "Please check this",
)
NOTES = (
    "Nice staff", "Too loud", "Bring cash", "Ask for Anna", "Meet Tom here", "Go early", "Closed in August",
    "Good for kids", "Take the back door", "Book a table", "Great view", "Too crowded", "Use the side entrance",
    "Has a big garden",
)  # fmt: skip
"""What tasks ask to note; no note of the base data says the same."""
LIST_NAMES = (
    "Summer trip", "City walk", "Date night", "Rainy day", "With kids", "Next visit", "School trip", "Long weekend",
    "First date", "Lunch break", "Bike ride", "Family day", "Winter trip", "Old friends", "Quiet places", "Must see",
)  # fmt: skip
"""Names of lists that tasks ask to make; the user has none of them yet."""
