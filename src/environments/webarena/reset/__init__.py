"""Putting a deployment's sites back to their first state."""
