"""The groups of commands of `waymark`; `cluster.cli` has the single ones."""
