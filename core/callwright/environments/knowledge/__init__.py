"""What a user knows and no tool tells: asking a session for it, and reading it from a file.

A PIN, the number of a passport, the day on which somebody wants to travel. Users answer with it, and checks of
provenance count an argument that stands in it as given rather than made up.
"""
