"""Answers of many prompts at once: prompts read once, rows refilled, each sample its own stream."""
