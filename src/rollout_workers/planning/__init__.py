"""Planning at inference: milestone state, stuck detection and re-planning on top of an agent."""
