"""Verdicts and milestones: WebArena's evaluators and subgoal checks."""
