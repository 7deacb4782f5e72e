"""Tasks of lighteval, lm-evaluation-harness and olmo-eval, each run in its own environment."""
