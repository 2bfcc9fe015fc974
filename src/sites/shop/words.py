"""What the shop's tasks ask to choose and to write, beside what its data consist of."""

from __future__ import annotations

RANKS = {
    "cheapest": ("Lowest price", "low"),
    "dearest": ("Highest price", "high"),
    "best rated": ("Best rated", "rated"),
}
"""How instructions ask for an extreme: the sort order's label and its value in the address."""
NEW_LABELS = ("Beach", "Garage", "School", "Club", "Barn", "Office")
OPINIONS = ("Love it", "Works well", "Not for me", "Good value", "Broke soon", "Best gift")
TEXTS = ("I use it every day", "It came late", "My family likes it", "The colour is wrong")
STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
WISHES = (
    "Wrap it as a gift",
    "It is a gift, leave out the bill",
    "Add a card: Happy birthday",
    "Add a card: Get well soon",
    "Add a card: Thank you",
)
"""What is asked of the shop with an order."""
