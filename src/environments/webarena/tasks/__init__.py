"""WebArena's task files: their format, their limits, and what is drawn from them."""
