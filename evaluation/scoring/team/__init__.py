"""A model spread over the GPUs of a node: one process for each, which all do the same passes."""
