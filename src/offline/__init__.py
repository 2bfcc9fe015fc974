"""Trajectories that others recorded, in their published forms, as episodes that a policy can learn from."""
