"""What the agent sees and says: observations, the action grammar, and what it is told about its actions."""
