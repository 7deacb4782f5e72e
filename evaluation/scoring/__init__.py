"""Scores a model: log-likelihoods by prefix tries, answers by greedy decoding."""
