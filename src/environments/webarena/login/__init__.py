"""Logging in at WebArena's sites: accounts, forms, and a pool of sessions."""
