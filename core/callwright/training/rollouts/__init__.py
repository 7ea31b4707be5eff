"""What trainers that sample share: the tasks of a step, numbers drawn without state, a step in figures."""
