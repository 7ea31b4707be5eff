"""Components of rewards: what one of them says of an attempt, and what it is."""
