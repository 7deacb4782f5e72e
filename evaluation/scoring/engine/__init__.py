"""Compute log-probabilities and answers of a model in memory: packed rows, masks and forward passes."""
