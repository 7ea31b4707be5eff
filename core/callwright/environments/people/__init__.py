"""People: who is signed in and whom they know, so that several environments can have the same ones.

An environment says whom its rows name; rows are then renamed. May import: bases, rows, worlds.
"""
