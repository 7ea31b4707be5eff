"""Outputs of commands that go through rows: what they are of, and how a command that was stopped goes on with them.

``unfinished`` keeps the ledger of an output, ``provenance`` the digests of files that it hangs on. May import: what
:mod:`callwright.commands` may.
"""
