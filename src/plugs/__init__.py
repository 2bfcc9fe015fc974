"""How plug points are found by name, and how their options are read."""
