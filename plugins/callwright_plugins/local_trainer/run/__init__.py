"""The course of a run: its phases and steps, its checkpoints, and the alarm about what it came to."""
