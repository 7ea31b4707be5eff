"""A server as an environment: its options, the pool of processes, sessions, and the lock on what was connected to."""
