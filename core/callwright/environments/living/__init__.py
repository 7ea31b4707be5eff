"""Living worlds: what time does to a session, between calls.

A clock policy says how long calls and the user's turns take, kinds of events what falls due and whom that is told.
"""
