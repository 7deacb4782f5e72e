"""Version of every computation but the tiers' (settings/tiers.py) whose change would change numbers.

Snakemake does not see a change in an imported module, so each rule carries the version as a
parameter and every result records it. Raise a version when its numbers would change: scores
stored under the old one are then computed again, and a bridge refuses to compare the two. REPORT
is about what pages and figures show: raising it draws them anew, from the same numbers.
"""

PREFILL_SLICE = "slice-1"
PREFILL_TASK = "task-1"
PREFILL_PROBES = "probes-1"
BRIDGE = "bridge-1"
REPORT = "report-3"
