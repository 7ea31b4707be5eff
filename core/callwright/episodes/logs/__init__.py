"""Logs: what an agent of another stack did in a session, as it happened, and conversations that were recorded."""
