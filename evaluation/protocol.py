"""Versions of the computations whose change would change numbers, but for the tiers' (settings/tiers.py).

Snakemake does not see a change in an imported module, so versions are part of every step's key
(records.py) and every result records them. Raise a version when its numbers would change: what was
made under the old one is then made again, and a bridge refuses to compare the two. RESULTS is about
what is written into the tier files besides numbers, REPORT about what pages and figures show.
"""

PREFILL_TOKENIZER = "tokenizer-1"
PREFILL_SLICE = "slice-2"
PREFILL_TASK = "task-3"
PREFILL_PROBES = "probes-2"
PREFILL_GENERATION = "generation-1"
RESULTS = "results-8"
BRIDGE = "bridge-6"
REPORT = "report-14"
