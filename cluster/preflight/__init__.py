"""What a run needs and whether it is there, before anything starts."""
