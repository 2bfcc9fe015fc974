"""Pages of the documentation that are written from the code: settings, modules, the index of decisions."""
