"""Milestones of tasks: written by a model, held against outcomes, matched to actions."""
