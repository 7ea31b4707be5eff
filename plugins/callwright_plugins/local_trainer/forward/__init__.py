"""What a policy computes over token ids: samples with a key-value cache, and log-probabilities with gradients."""
