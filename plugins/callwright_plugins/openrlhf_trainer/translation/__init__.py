"""A recipe as OpenRLHF's command line."""
