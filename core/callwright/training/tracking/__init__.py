"""Trackers: what shows runs elsewhere while they grow, and how the rows of a run folder reach it.

May import: the run folder and everything below it.
"""
