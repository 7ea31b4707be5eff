"""``callwright compare``: benchmarks by checkpoints, as a table in the terminal, a page, Markdown and CSV."""
