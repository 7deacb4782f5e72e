"""Versions of the computations that determine numbers, except those of tiers (settings/tiers.py).

Snakemake does not notice changes in imported modules, so versions are part of every step's key
(records.py), and every result records them. Raise a version when its numbers would change: results of
the old version are then made again, and a bridge refuses to compare the two. SCORES is the version of
rows in the store, RESULTS that of the tier files' other contents, REPORT that of pages and figures.
"""

PREFILL_TOKENIZER = "tokenizer-2"
PREFILL_SLICE = "slice-2"
PREFILL_TASK = "task-4"
PREFILL_PROBES = "probes-3"
PREFILL_GENERATION = "generation-2"
SCORES = "scores-2"
RESULTS = "results-14"
BRIDGE = "bridge-15"
REPORT = "report-19"
