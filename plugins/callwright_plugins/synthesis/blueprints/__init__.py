"""Blueprints: what a conversation is about, with every value bound, before there are words for it."""
