"""Rows, attention masks and forward passes: log-probabilities and answers of a model in memory."""
