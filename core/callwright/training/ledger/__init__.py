"""The ledger of a folder: who writes into it, what its rows were made of, and whether its files are as they were left.

``owner`` is the lock, ``ingredients`` are the digests of what takes part, ``account`` compares them with those that a
folder was begun with, and ``seals`` look after checkpoints and the rows that belong to them.
"""
