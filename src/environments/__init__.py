"""Where episodes are played: the contract, the kinds of environment, and the pages as an agent sees them."""
