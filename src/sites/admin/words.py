"""Vocabulary of the back office.

Short lists, so that a small vocabulary reads the whole site. The first of a list is what forms propose.
"""

from __future__ import annotations

PENDING, ON_HOLD, REFUNDED = "Pending", "On hold", "Refunded"
"""Statuses of orders that only the back office knows, beside those of the shop."""
GROUPS = ("General", "Wholesale", "Retail", "Staff")
CARRIERS = ("Post", "Courier", "Train")
REFUND_REASONS = ("Damaged", "Wrong item", "Too late", "Not needed")
REVIEW_STATUSES = ("Pending", "Approved", "Rejected")
PRODUCT_STATUSES = ("Enabled", "Disabled")
STAFF = ("nina", "omar", "rosa")
"""User names of those who may log in; the first is who tasks act for."""
FIRST_NAMES = ("Amy", "Bob", "Cleo", "Dirk", "Ella", "Fred", "Gina", "Hugo", "Iris", "Jack", "Kate", "Luis")
LAST_NAMES = ("Stone", "Green", "Marsh", "Wood")
REVIEW_TITLES = ("Love it", "Good value", "Not for me", "Broke soon", "Best buy", "Too small")
REVIEW_TEXTS = ("I use it every day.", "It came late.", "My family likes it.", "The colour is wrong.")
COMMENTS = ("Please pack well", "Call before delivery", "Gift for a friend", "Paid by phone", "Leave at the door")
SEASONS = ("Spring", "Summer", "Autumn", "Winter", "Easter", "School")
SALES = ("sale", "offer", "days", "deal")
PAGE_TEXTS = (
    "We answer within two days.",
    "All parcels are insured.",
    "Prices include tax.",
    "Call us at any time.",
    "Please keep your receipt.",
    "We are closed on Sunday.",
)
PAGES = ("About us", "Delivery", "Returns", "Privacy", "Terms", "Gift cards", "Careers", "Press")
"""Titles of the content pages at first."""
PAGE_TITLES = (
    "Our story",
    "Shipping",
    "Refunds",
    "Your data",
    "Rules",
    "Vouchers",
    "Jobs",
    "News",
    "Help",
    "Opening hours",
)
"""New titles that tasks give to content pages; no page has them at first."""
NEW_STYLES = ("Modern", "Simple", "Classic", "Fancy", "Light", "Heavy")
"""How the names of new products begin; the shop has no such product."""
NEW_FIRST_NAMES = ("Nora", "Otto", "Pia", "Rick", "Tess", "Uma", "Vera", "Will")
NEW_SEASONS = ("Holiday", "Garden", "Family", "Friends", "Weekend", "Birthday")
