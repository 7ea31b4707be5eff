"""The plugins that ship with Callwright. Each stands exactly where anybody else's does."""
