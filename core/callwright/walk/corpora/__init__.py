"""Corpora: of tasks that are made when they are asked for, and of tasks in a list."""
