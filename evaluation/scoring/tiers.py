"""The function that scores each tier; every item goes through the score store.

Each function takes the tier's caches by name and returns the tier's entry of the job's record: the
name of each score, and of what it was made.
"""

from collections.abc import Callable, Mapping
from typing import Any

from evaluation.scoring.choices import score_tasks
from evaluation.scoring.completions import answer_probes, complete_tasks
from evaluation.scoring.perplexity import score_slices
from evaluation.scoring.session import Job
from evaluation.settings.tiers import complete

Scorer = Callable[[Job, Mapping[str, Any]], dict[str, Any]]

SCORERS: Mapping[str, Scorer] = complete(
    {
        "tier2": score_slices,
        "tier3": score_tasks,
        "tier4": answer_probes,
        "tier5": complete_tasks,
    },
    "scoring.tiers.SCORERS",
)
