"""What the calls of a program need to run: rules, references to earlier results, sessions in other processes."""
