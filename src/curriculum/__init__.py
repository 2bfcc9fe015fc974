"""Which tasks the next phase plays."""
