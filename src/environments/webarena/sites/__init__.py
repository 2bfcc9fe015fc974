"""WebArena's sites: addresses, deployments, the hosts of an episode, and the sites' own interfaces."""
