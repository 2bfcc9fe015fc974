"""Real applications from package registries, as sites of ``run.environment: webarena``."""
