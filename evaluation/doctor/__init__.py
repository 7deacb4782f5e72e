"""Checks for what would stop a scoring job, before a GPU is requested."""
