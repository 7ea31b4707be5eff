"""Grounded synthesis: from a live environment to tasks."""
