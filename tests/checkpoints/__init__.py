"""Tests of evaluation.checkpoints."""
