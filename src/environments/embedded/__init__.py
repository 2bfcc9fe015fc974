"""Episodes on the embedded sites: their sessions and the hosts of a worker."""
