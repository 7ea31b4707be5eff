"""Components that ask services: checks of teachers, and live services kept out of every check."""
