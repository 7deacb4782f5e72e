"""Verification of generated answers: a verdict per completion and verifier."""
