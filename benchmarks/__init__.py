"""The scoring engine beside lm-evaluation-harness and a bare forward pass, in one process."""
