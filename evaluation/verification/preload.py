"""Calls `preload` when the forkserver, the process that all workers are forked from, imports it."""

from evaluation.verification.pool import preload

preload()
