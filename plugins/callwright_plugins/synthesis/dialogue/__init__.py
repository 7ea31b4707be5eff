"""Dialogues: blueprints become conversations by a state machine (Prove, section 3.2, step 3)."""
