"""WebArena's sites: addresses, deployments, the addresses of an episode, and the sites' own interfaces."""
