"""The gateway: agents that nobody changed ask it for completions, and what they were given is recorded id for id."""
