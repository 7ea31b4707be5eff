"""BFCL's single-turn categories: calls held against what is allowed, and whether anything is called at all."""
