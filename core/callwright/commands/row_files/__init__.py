"""What files of rows are besides plain JSONL of good rows.

``episodes`` reads the turns of a row, ``remarks`` finds what is odd about rows. :mod:`callwright.commands.jsonl` is
made of it, and of :mod:`callwright.compression`.
"""
