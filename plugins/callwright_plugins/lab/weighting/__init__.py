"""Weighting: how much a reward hangs on its weights and on what a mismatch costs (TIER, section 7 leaves it open)."""
