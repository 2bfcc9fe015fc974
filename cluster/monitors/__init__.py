"""Where a run's numbers go as they happen."""
