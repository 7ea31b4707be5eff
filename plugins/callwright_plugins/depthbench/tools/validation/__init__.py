"""The ten domains whose tools occur in validation tasks only, a module each."""
