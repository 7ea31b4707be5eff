"""Exploration: what the tools of an environment can be made to do, found by calling them."""
