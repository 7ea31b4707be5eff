"""The models that a run begins with: a policy in its directory, or a tiny one made from scratch with its tokenizer."""
