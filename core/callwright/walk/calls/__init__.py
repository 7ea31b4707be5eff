"""What the calls of a program need to run: rules, references, the loop over them, sessions in other processes."""
