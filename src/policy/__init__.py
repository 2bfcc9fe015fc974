"""The policy: tokenizers, prompt formats, models, generation, servers and weight publication."""
