"""Compare the scoring engine with lm-evaluation-harness and a bare forward pass, in one process."""
