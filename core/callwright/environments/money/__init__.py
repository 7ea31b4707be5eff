"""Money that several environments share: what a person pays in one is posted to the person's account in another.

An environment declares its charges, or that it is a bank. May import: worlds, rows.
"""
