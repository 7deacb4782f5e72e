"""Imported by the process that all workers of the pool are copies of."""

from evaluation.verification.worker import load

load()
