"""Conversations as the protocols of others write them, read as messages."""
