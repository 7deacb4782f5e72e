"""The metrics of each tier: of blocks of text, of candidates, of probes, of completions."""

from evaluation.settings.metric import LARGEST, Metric

OF_BLOCKS = (
    Metric(
        "ppl",
        unit="perplexity",
        higher_is_better=False,
        digits=3,
        description="Perplexity, exp of `nats_per_token`.",
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
        description="Loss per scored token.",
        least=0.0,
        most=LARGEST,
        numerator="nats",
        denominator="tokens",
    ),
    Metric(
        "bits_per_byte",
        unit="bits per byte",
        higher_is_better=False,
        description="Loss per UTF-8 byte of scored text.",
        least=0.0,
        numerator="nats",
        denominator="bytes",
        in_bits=True,
    ),
    Metric(
        "token_accuracy",
        is_secondary=True,
        description="Share of scored tokens that were the most likely one.",
        least=0.0,
        most=1.0,
        numerator="correct",
        denominator="tokens",
    ),
    Metric(
        "z_loss",
        unit="squared nats",
        higher_is_better=False,
        is_secondary=True,
        worth=1.0,
        called="z-loss",
        description="Mean over scored tokens of log(sum of exp(logit))².",
        least=0.0,
        numerator="squared_log_totals",
        denominator="tokens",
    ),
)
"""Ratios of sums; a metric with the numerator of an earlier one follows from it, so it is the same test."""

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
"""Means over questions, each with a formula in `metrics.measures`."""

TRUNCATED = Metric(
    "truncated_rate",
    higher_is_better=False,
    description="Share of answers that reached the token limit.",
)

OF_PROBES = (
    Metric(
        "all_checks_pass_rate",
        description="Share of answers that pass all checks.",
        of_checks=frozenset({"format", "instruction", "clean", "json", "code"}),
    ),
    Metric(
        "instruction_match_rate",
        description="Share of answers with the right content.",
        of_checks=frozenset({"instruction"}),
    ),
    Metric(
        "format_valid_rate",
        description="Share of answers in the required format.",
        of_checks=frozenset({"format", "json", "code"}),
    ),
    Metric(
        "chat_clean_rate",
        description="Share of answers without chat artifacts.",
        of_checks=frozenset({"clean"}),
    ),
    Metric(
        "code_parse_rate",
        description="Share of answers whose code is valid Python.",
        of_checks=frozenset({"code"}),
    ),
    Metric(
        "json_valid_rate",
        description="Share of answers that are JSON of the schema.",
        of_checks=frozenset({"json"}),
    ),
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
        description="Mean number of tokens of a completion.",
        least=0.0,
    ),
)
"""Means over a prompt's completions, which the table of prompts has as columns."""
