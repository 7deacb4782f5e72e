"""Tasks of lighteval, lm-evaluation-harness and olmo-eval, each run in an environment of its own through files."""
