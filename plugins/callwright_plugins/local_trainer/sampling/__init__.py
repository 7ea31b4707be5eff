"""What is sampled in a step: the tasks' groups, the turns of their episodes, and the sampler of a trained model."""
