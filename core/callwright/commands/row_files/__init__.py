"""What files of rows are besides plain JSONL of good rows.

``compressed`` opens and packs gzip and Zstandard, ``remarks`` finds what is odd about rows. May import: nothing but
:mod:`callwright.errors`; :mod:`callwright.commands.jsonl` is made of it.
"""
