"""Metrics as it happens: which there are, and how a process records them."""
