"""OpenRLHF at work: its process, what it logs, and the rows that this becomes."""
