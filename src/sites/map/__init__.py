"""The map: places of a small region, the roads between them, directions, nearby search, saved lists."""
