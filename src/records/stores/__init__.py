"""Where a run's files are kept: a folder that all its machines see, or an object store."""
