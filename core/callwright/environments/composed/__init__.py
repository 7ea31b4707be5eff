"""Composed environments: one person with several apps, in one session with one clock.

The parts keep their tools, rows, policies and failures. Here is what they have together: names, scenarios, time,
digests, forks, goals and briefings. May import: environments, goals, living, briefing, isolated.
"""
