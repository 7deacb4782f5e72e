"""How models run and how their answers are judged: nothing of what is evaluated."""

from typing import Literal

from pydantic import Field

from evaluation.settings.model import Fraction, Integer, Settings


class Scoring(Settings):
    """How models run; none of these changes a score by more than floating-point noise but dtype."""

    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="`auto`: a GPU if there is one."
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="`auto`: the checkpoint's own on a GPU, float32 on CPU."
    )
    row_tokens: Integer = Field(
        16_384,
        gt=0,
        description="Tokens of one forward pass on a GPU; lower it if memory runs out.",
    )
    cpu_row_tokens: Integer = Field(1024, gt=0, description="The same on CPU.")
    generation_batch: Integer = Field(
        64, gt=0, description="Answers written at once; halved where memory is not enough."
    )


class Verification(Settings):
    """How generated answers are judged."""

    workers: Integer | None = Field(
        None, gt=0, description="Processes; as many as there are CPUs if not given."
    )
    seconds: Fraction = Field(20.0, gt=0, description="Time for one answer.")
    memory_mb: Integer = Field(2048, ge=256, description="Memory for one answer, in MB.")
    max_error_share: Fraction = Field(
        0.01, ge=0, le=1, description="Share of answers whose verifier may fail."
    )
