"""The families of tasks: programs with slots, and the ways of asking for them."""
