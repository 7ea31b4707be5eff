"""Checks of what measures: benchmarks."""
