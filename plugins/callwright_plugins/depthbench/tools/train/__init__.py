"""The ten domains whose tools occur in training tasks only, a module each."""
