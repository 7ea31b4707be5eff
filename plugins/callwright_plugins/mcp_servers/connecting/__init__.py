"""Talking to a server: the loop, a connection, a workspace, what it says. Nothing here knows of environments."""
