"""Tier3's metrics that are computed from a table of candidates, each with a formula in `metrics.measures`."""

from evaluation.settings.metric import Metric

OF_CANDIDATES = (
    Metric(
        "gold_bits_per_byte",
        unit="bits per byte",
        higher_is_better=False,
        is_secondary=True,
        description="Bits per UTF-8 byte of the right answer.",
        least=0.0,
    ),
    Metric(
        "correct_probability",
        is_secondary=True,
        description="Share of the right answer in the candidates' probabilities.",
        least=0.0,
        most=1.0,
    ),
    Metric(
        "gold_margin",
        unit="nats per character",
        is_secondary=True,
        called="margin of the gold answer",
        description="Nats per character of the right answer minus those of the best other.",
    ),
    Metric(
        "brier_score",
        unit="squared probability",
        higher_is_better=False,
        is_secondary=True,
        called="Brier score",
        description="Squared distance of the candidates' probabilities from the right answer's, from 0 to 2.",
        least=0.0,
        most=2.0,
    ),
    Metric(
        "calibration_error",
        higher_is_better=False,
        is_secondary=True,
        called="expected calibration error",
        description="What a question contributes to the expected calibration error, whose value is the mean.",
        least=-1.0,
        most=1.0,
    ),
)
"""The first one accompanies an undecided accuracy."""
