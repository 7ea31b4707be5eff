"""What a server is worth as an environment: the probe that finds out, step by step, and its command."""
