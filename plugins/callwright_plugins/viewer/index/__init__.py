"""The index of a source: a SQLite file beside it that can be thrown away at any time."""
