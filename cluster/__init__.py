"""The Ray application: CLI, configuration, phase controller and run records."""
