"""Milestones for tasks that bring none: written by a language model, rated by one, checked by a trained model."""
