"""Tasks over several sites: what is found on one is used on another."""
