"""Compressed files: gzip and Zstandard, recognised by their first bytes. May import: nothing but the errors."""
