"""Checks of what people start: trainers and commands."""
