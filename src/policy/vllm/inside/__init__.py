"""What runs in vLLM's own Python, which need not have Waymark: found by this folder's path, not as a package."""
