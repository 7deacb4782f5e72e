"""Evaluates the checkpoints of a staged pretraining run.

Data flows one way, and a room imports only from the rooms before it:
settings -> prefill -> checkpoints -> scoring -> bridge -> reporting.
"""

__version__ = "1.0.0"
