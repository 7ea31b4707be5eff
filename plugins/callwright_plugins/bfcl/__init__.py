"""The Berkeley Function Calling Leaderboard (BFCL)."""
