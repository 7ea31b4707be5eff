"""Briefings: what a model is told of the world it works in, as a new clerk would be: rules, time, and whom it serves.

May import: worlds, times as text.
"""
