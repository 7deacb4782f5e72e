"""Looks for new checkpoints while a model is being trained, and starts Snakemake for them."""
