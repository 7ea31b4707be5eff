"""Files of rows beyond plain JSONL: compression by what the bytes are, remarks on rows, outputs that are gone on with.

``compressed`` opens and packs gzip and Zstandard, ``remarks`` finds what is odd about rows that can be used, and
``unfinished`` keeps the ledger of an output, so that a command that was killed goes on. May import: what
:mod:`callwright.commands` may.
"""
