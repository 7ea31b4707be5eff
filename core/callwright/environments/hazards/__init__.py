"""Hazards: what keeps a call from being cheap, sure and repeatable: faults that are drawn, and limits of rates.

``policy`` states them, ``noise`` spoils what a read returns, ``exposure`` is what a session knows of them.
"""
