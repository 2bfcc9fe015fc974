"""Does a run add up? Manifests, files, episodes, trained steps, attempts."""
