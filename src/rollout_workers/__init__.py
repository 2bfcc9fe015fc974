"""Browser rollouts: environments, the episode loop, worker actors and their pool."""
