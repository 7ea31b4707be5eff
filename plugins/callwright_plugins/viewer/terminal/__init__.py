"""The viewer in the terminal: the table of rollouts, one of them, its group, and curves. Needs the extra ``view``."""
