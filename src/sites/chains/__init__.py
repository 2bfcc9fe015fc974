"""Chains: tasks composed of atoms, small things to do on a site that can be checked one by one."""
