"""Modules that import what verifiers need, for the process that all workers are copies of."""
