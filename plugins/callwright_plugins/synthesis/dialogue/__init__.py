"""Dialogue: a blueprint becomes a conversation, by a finite state machine, and the conversation a task."""
