"""What the pages ask for: each function answers one question as JSON."""
