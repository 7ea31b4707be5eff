"""What can be looked at: which files a path holds, and what their rows say."""
