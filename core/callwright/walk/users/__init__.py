"""Users: who talks with the agent in an episode of several turns, what they know of the world, and what they do."""
