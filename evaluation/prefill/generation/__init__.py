"""Tier5's cache: prompts to complete, and what verifiers read of each."""
