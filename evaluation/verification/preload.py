"""Runs when the process that all workers are forked from imports it, as the forkserver does."""

from evaluation.verification.pool import preload

preload()
