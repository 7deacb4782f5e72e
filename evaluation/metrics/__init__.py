"""Metrics from stored log-probabilities, checks and verdicts: no model, no torch."""
