"""Distractors that work: tasks among the tools of other environments, in sessions in which these have effects.

May import: tasks, environments, language.
"""
