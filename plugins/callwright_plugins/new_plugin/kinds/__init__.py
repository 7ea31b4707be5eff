"""A component of each kind, as ``callwright plugins new`` writes it: working code, in which only names are replaced.

``zebra`` stands for the name that is asked for, ``Zebra`` for its class, ``callwright_zebra`` for its module.
"""
