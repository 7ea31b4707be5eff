"""Our own lists of words: frames, verbs, personas, and slips. They are stable: a change of one changes every query."""
