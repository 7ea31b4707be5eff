"""The scripted teacher's language: plans said as people say them, and read back exactly.

``grammar`` has both directions. What a query says is decided by tables of words (``frames``, ``slots``, ``verbs``), the
tools' own names and schemas (``phrases``), and what an environment adds to them (``overrides``). Nothing here asks a
model, and nothing is drawn from anything but a seed.
"""
