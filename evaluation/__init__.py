"""Evaluates the checkpoints of a staged pretraining run.

Data flows one way, and a package imports only from the packages before it:
settings -> prefill -> checkpoints -> scoring -> grading -> bridge -> reporting.
"""

__version__ = "1.0.0"
