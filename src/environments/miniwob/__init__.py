"""MiniWoB++: small pages of one instruction each, from the ``miniwob`` package, as an environment."""
