"""Schema echo: published tool-use data without tools that run, made executable (TIER, appendix E.2).

Each call that fits its schema returns its own arguments, with those that were left out at their declared defaults. An
answer is right if the required arguments are those of the released trajectory.
"""
