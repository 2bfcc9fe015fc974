"""Records, Arrow shards, the replay buffer, the perplexity filter and progress labels."""
