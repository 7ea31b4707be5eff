"""What ``depthbench-v1.1`` mends: edits of worlds, rows on and beside bounds, equally right programs, spellings."""
