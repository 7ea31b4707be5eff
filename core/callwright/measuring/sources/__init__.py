"""Sources: the files of others that a benchmark needs, as a package index holds them, each pinned by its digest."""
