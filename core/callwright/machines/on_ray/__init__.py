"""Work on a Ray cluster: actors as workers, and what becomes of the cluster when the command is killed."""
