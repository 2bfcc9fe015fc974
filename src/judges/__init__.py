"""Verdicts and milestones: WebArena's evaluators and milestone checks."""
