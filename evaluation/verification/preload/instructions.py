"""What verifiers of instructions import."""

from evaluation.verification.worker import load

load(["instructions"])
