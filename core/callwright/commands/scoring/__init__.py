"""Rows of completions in, rewards out: what ``callwright score`` does in this process and in workers."""
