"""Isolation: sessions of Python tools in processes that can be killed.

What a tool does to its process stays there: endless loops, memory, ``os._exit``, ``fork``, ``chdir``, text on standard
output. This holds bugs, not attackers: a process of the same user may do what the user may.
"""
