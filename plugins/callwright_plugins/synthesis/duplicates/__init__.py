"""Near-duplicates: which of many sets, or texts, are too much like an earlier one. Every decision is exact."""
