"""BFCL's multi-turn categories: entries of several turns over the classes of the pinned wheel.

:mod:`.suite` is what others use. The classes run in a process of their own (:mod:`.classes`, :mod:`.backend`), of a
wheel whose digest is pinned (:mod:`.package`); :mod:`.calls` and :mod:`.decoding` read what models and official files
write, and execute nothing.
"""
