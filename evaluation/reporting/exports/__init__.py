"""Curves for tools that show the training loss."""
