"""Generate answers to many prompts at once: continuous batching, and a random stream for each sample."""
