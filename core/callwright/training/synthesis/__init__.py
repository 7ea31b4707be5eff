"""Synthesis: makers of tasks that work unit by unit, and what has them work: recipe, workers, folder.

``units`` and ``synthesizer`` are the protocol. ``recipe`` reads what is to be made, ``work`` is what a worker does,
``folder`` plans, goes on after a stop, compares and writes the tasks, ``yields`` counts what became of the units.
"""
