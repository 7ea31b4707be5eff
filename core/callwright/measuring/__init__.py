"""Measuring: which tasks are asked, what is kept of every attempt, how two evaluations of the same tasks compare.

May import: training and everything below it.
"""
