"""Openings: what happened in a task's world, and what was said, before its episode begins."""
