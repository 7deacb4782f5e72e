"""Paired comparison of a stage's steps with its bridge, and what follows from it."""
