"""vLLM as a policy backend: servers that are started or found, asked and given weights over HTTP."""
