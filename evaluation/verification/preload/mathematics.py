"""What verifiers of mathematics import."""

from evaluation.verification.worker import load

load(["mathematics"])
