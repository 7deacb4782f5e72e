"""Tasks of lighteval and lm-evaluation-harness, each run in its own environment."""
