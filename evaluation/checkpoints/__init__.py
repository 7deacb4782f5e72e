"""Nanotron and Hugging Face checkpoints: found, checked, read into a model, and written."""
