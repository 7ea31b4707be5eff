"""Hardening: tasks that a solver finds too easy are changed, and held to everything that tasks are held to."""
