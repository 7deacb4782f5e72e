"""Tasks of lighteval and lm-evaluation-harness, each run in an environment of its own through files."""
