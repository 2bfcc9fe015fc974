"""How much of the sites' base data a process keeps.

Chains have data of many seeds (``environments.embedded.chains.data_seeds``). Whoever draws or plays them comes back to
a seed again and again; with data built anew each time, drawing 3,000 chains took over half an hour.
"""

SEEDS_KEPT = 64
"""Seeds whose data is kept, of each site: the six take 0.2 s to build and have 4 MB."""
