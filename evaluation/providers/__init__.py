"""Tasks of lighteval and lm-evaluation-harness, each in an environment of its own, talked to by files."""
