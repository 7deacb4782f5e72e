"""Imported by the process that all workers are forked from: imports the verifiers' libraries once.

It ends with its parent, and its workers with it, which an answer may keep busy for ever.
"""

import os

from evaluation import processes
from evaluation.verification.pool import KINDS_VARIABLE, load_libraries

processes.end_with_parent()
load_libraries(os.environ.get(KINDS_VARIABLE, "").split())
