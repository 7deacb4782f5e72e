"""Answers by vLLM, which lives in an environment of its own."""
