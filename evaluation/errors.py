"""The one family of exceptions that the command line turns into a sentence.

EvaluationError
├── ConfigError            a key, file or value that the user wrote
├── SourceError            a dataset, mirror or tokenizer that cannot be used
├── CacheError             a prefilled cache that is missing, foreign or corrupt
├── CheckpointError        a checkpoint that cannot be read
│   ├── IncompleteCheckpoint   … because something of it is missing or still being written
│   └── UnsupportedCheckpoint  … because no model class represents it exactly
├── ScoringError           a score that cannot be computed
│   └── NonFiniteError         … because the model gives NaN or infinite values
├── ResultsError           a results file that is missing, damaged or of another version
└── BridgeError            two results that must not be compared

Every message names the file, key or item, what was expected, and what to do.
"""


class EvaluationError(Exception):
    """Base of all errors a user can mend; printed without a traceback, exit code 1."""


class ConfigError(EvaluationError):
    """A configuration key, suite or argument is wrong."""


class SourceError(EvaluationError):
    """A dataset, mirror or tokenizer cannot be loaded or used."""


class CacheError(EvaluationError):
    """A prefilled cache is missing, foreign or corrupt."""


class CheckpointError(EvaluationError):
    """A checkpoint cannot be read."""


class IncompleteCheckpoint(CheckpointError):
    """A checkpoint lacks a file or a slice of a tensor, or is still being written."""


class UnsupportedCheckpoint(CheckpointError):
    """No model class represents the checkpoint exactly."""


class ScoringError(EvaluationError):
    """A score cannot be computed."""


class NonFiniteError(ScoringError):
    """The model gives NaN or infinite values."""


class ResultsError(EvaluationError):
    """A file of a results folder is missing, damaged or of another version."""


class BridgeError(EvaluationError):
    """Two results differ in protocol, tokenizer or data and must not be compared."""
