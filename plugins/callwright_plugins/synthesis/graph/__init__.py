"""The dependency graph of an environment's tools: every edge proven by calls with and without its source."""
