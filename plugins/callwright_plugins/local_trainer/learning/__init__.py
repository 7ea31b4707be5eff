"""How weights change: the policy update, the critic, the warm start, and the optimiser's step that they share."""
