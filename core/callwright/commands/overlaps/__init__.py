"""What training data is held against: whatever has entries, by its name or path."""
