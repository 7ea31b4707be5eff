"""Supervised training on demonstrations: the trainer ``sft``, the baseline of the papers and a start for their RL."""
