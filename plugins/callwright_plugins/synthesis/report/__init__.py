"""What people see of a synthesis: one task in the terminal, all of them on a page."""
