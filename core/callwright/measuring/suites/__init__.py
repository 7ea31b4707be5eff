"""Suites: the benchmarks of somebody's tables with their settings, and the numbers that were printed."""
