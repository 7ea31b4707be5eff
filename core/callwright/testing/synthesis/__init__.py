"""Conformance of synthesizers, and the shop as a plugin: rows of tasks need an environment that a registry knows."""
