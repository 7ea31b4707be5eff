"""An environment as a server: requests answered out of sessions, over stdio and HTTP, and the command that does it."""
