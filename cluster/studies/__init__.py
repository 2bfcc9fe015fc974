"""Arms and seeds of an experiment: its file, its runs, their records, and what comes of its predictions."""
