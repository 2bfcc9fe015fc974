"""The embedded shop."""
