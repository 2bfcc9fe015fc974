"""Logging in at WebArena's sites: accounts, forms, and logged-in sessions."""
