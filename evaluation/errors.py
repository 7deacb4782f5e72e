"""All exceptions that the command line reports as one sentence, without a traceback.

EvaluationError
├── ConfigError            a key, file or value that the user wrote
├── SourceError            a dataset, mirror or tokenizer that cannot be used
├── CacheError             a prefilled cache that is missing, foreign or corrupt
├── CheckpointError        a checkpoint that cannot be read
│   ├── IncompleteCheckpoint   … because something of it is missing or still being written
│   └── UnsupportedCheckpoint  … because no model class represents it exactly
├── OutputError            a path that cannot be written to
├── ScoringError           a score that cannot be computed
│   ├── NonFiniteError         … because the model gives NaN or infinite values
│   ├── GpuFault               … because the GPU failed
│   ├── CompileError           … because code for the GPU cannot be compiled, or is wrong
│   ├── NotEnoughMemory        … because a GPU has too little memory; a smaller pass may fit
│   └── CommandError           … because a stage's external command fails
├── SandboxError           a machine on which generated programs cannot be run safely
├── ResultsError           a results file that is missing, damaged or of another version
└── BridgeError            two results that must not be compared

Every message names the file, key or item, what was expected, and what to do.
"""

from typing import ClassVar


class EvaluationError(Exception):
    """Base of all errors a user can fix; printed without a traceback, exit code 1."""

    is_final: ClassVar[bool] = False
    """Whether the checkpoint is at fault: others continue without it, and a retry is useless."""


class ConfigError(EvaluationError):
    """A configuration key, suite or argument is wrong."""


class SourceError(EvaluationError):
    """A dataset, mirror or tokenizer cannot be loaded or used."""


class CacheError(EvaluationError):
    """A prefilled cache is missing, foreign or corrupt."""


class CheckpointError(EvaluationError):
    """A checkpoint cannot be read."""

    is_final = True


class IncompleteCheckpoint(CheckpointError):
    """A checkpoint lacks a file or a slice of a tensor, or is still being written."""


class UnsupportedCheckpoint(CheckpointError):
    """No model class represents the checkpoint exactly."""


class OutputError(EvaluationError):
    """A path that the user named cannot be written to."""


class ScoringError(EvaluationError):
    """A score cannot be computed."""


class NonFiniteError(ScoringError):
    """The model gives NaN or infinite values."""

    is_final = True


class GpuFault(ScoringError):
    """The GPU failed during a run; this process cannot use it any more, but another one may."""


class CompileError(ScoringError):
    """Code for the GPU cannot be compiled, or gives wrong values; uncompiled scoring may work."""


class NotEnoughMemory(ScoringError):
    """A GPU has too little memory; fewer tokens per forward pass, or fewer answers, may fit."""


class CommandError(ScoringError):
    """A stage's external command fails, or its output does not fit the suite."""

    is_final = True


class SandboxError(EvaluationError):
    """Generated programs cannot be run safely on this machine."""


class ResultsError(EvaluationError):
    """A file of a results folder is missing, damaged or of another version."""


class BridgeError(EvaluationError):
    """Two results differ in protocol, tokenizer or data and must not be compared."""
