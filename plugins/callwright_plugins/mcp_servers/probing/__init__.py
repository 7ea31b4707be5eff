"""What a server is worth as an environment: the probe that finds out, the arguments it invents, and its command."""
