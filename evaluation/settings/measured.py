"""The metrics of each tier: of blocks of text, of candidates, of probes, of completions."""

from functools import partial

from evaluation.settings.metric import Metric

_LOSS = partial(Metric, higher_is_better=False, numerator="nats")
_SECONDARY = partial(Metric, higher_is_better=False, is_secondary=True)

OF_BLOCKS = (
    _LOSS("ppl", unit="perplexity", digits=3, least=1.0, denominator="tokens", link="exp"),
    _LOSS("nats_per_token", unit="nats per token", worth=0.02, least=0.0, denominator="tokens"),
    _LOSS("bits_per_byte", unit="bits per byte", least=0.0, denominator="bytes", in_bits=True),
)
"""Ratios of sums; a metric with the numerator of an earlier one follows from it, so it is the same test."""

OF_CANDIDATES = (
    _SECONDARY("gold_bits_per_byte", unit="bits per byte", least=0.0),
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
    _SECONDARY(
        "mean_tokens", unit="tokens", digits=1, worth=10.0, called="tokens written", least=0.0
    ),
)
"""Means over a prompt's completions, which the table of prompts has as columns."""
