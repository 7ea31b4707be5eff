"""How the pages get it: from a server of this machine, or from files."""
