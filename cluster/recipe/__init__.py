"""The recipe: every setting of a run, validated."""
