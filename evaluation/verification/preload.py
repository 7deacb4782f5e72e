"""Imports the verifiers' libraries in the process that all workers are forked from.

It ends with the one that started it, and they with it: by itself it would wait for its last worker,
which an answer may keep busy for ever.
"""

import os

from evaluation.verification.worker import LIBRARIES_VARIABLE, end_with_parent, load

end_with_parent()
load(os.environ.get(LIBRARIES_VARIABLE, "").split())
