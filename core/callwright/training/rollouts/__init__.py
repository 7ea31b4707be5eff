"""What trainers share: the tasks of a step, numbers drawn without state, a step in figures, learning rates."""
