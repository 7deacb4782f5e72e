"""The metrics of each tier: of blocks of text, of candidates, of probes, of completions."""

from evaluation.settings.metric import Metric

OF_BLOCKS = (
    Metric(
        "ppl",
        unit="perplexity",
        higher_is_better=False,
        digits=3,
        least=1.0,
        numerator="nats",
        denominator="tokens",
        link="exp",
    ),
    Metric(
        "nats_per_token",
        unit="nats per token",
        higher_is_better=False,
        worth=0.02,
        least=0.0,
        numerator="nats",
        denominator="tokens",
    ),
    Metric(
        "bits_per_byte",
        unit="bits per byte",
        higher_is_better=False,
        least=0.0,
        numerator="nats",
        denominator="bytes",
        in_bits=True,
    ),
)
"""Ratios of sums; a metric with the numerator of an earlier one follows from it, so it is the same test."""

OF_CANDIDATES = (
    Metric(
        "gold_bits_per_byte",
        unit="bits per byte",
        higher_is_better=False,
        is_secondary=True,
        least=0.0,
    ),
    Metric("correct_probability", is_secondary=True, least=0.0, most=1.0),
)
"""Means over questions, each with a formula in `metrics.measures`."""

TRUNCATED = Metric("truncated_rate", higher_is_better=False)

OF_PROBES = (
    Metric(
        "all_checks_pass_rate",
        of_checks=frozenset({"format", "instruction", "clean", "json", "code"}),
    ),
    Metric("instruction_match_rate", of_checks=frozenset({"instruction"})),
    Metric("format_valid_rate", of_checks=frozenset({"format", "json", "code"})),
    Metric("chat_clean_rate", of_checks=frozenset({"clean"})),
    Metric("code_parse_rate", of_checks=frozenset({"code"})),
    Metric("json_valid_rate", of_checks=frozenset({"json"})),
    TRUNCATED,
)
"""Shares of prompts whose checks of some kinds all pass."""

OF_COMPLETIONS = (
    Metric(
        "mean_tokens",
        unit="tokens",
        higher_is_better=False,
        digits=1,
        is_secondary=True,
        worth=10.0,
        called="tokens written",
        least=0.0,
    ),
)
"""Means over a prompt's completions, which the table of prompts has as columns."""
