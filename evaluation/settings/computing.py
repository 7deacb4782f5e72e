"""Settings of how models run and how their answers are verified, not of what is evaluated."""

from typing import Literal, Self

from pydantic import Field, model_validator

from evaluation.processes import usable_cores
from evaluation.settings.model import (
    ExpandedPath,
    Fraction,
    Integer,
    SequenceLength,
    Settings,
    Tokens,
)


class Scoring(Settings):
    """How models run; only `dtype` changes a score by more than floating-point noise."""

    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="`auto`: a GPU if any.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="`auto`: the checkpoint's own on a GPU, float32 on CPU."
    )
    compile: Literal["auto", "off"] = Field(
        "auto",
        description="`auto`: compiled layers on a GPU; `off`: plain ones, which are slower.",
    )
    row_tokens: Tokens = Field(16_384, description="Tokens of a pass on a GPU; fewer save memory.")
    cpu_row_tokens: Tokens = Field(1024, description="The same on CPU.")
    checkpoints_per_job: Integer = Field(
        1,
        ge=1,
        le=16,
        description="How many checkpoints one job scores, on all of its GPUs.",
    )
    generation_batch: Integer | None = Field(
        None,
        gt=0,
        le=2**16,
        description="Most completions at once, if memory allows. Default: 1024 on a GPU, 64 on CPU.",
    )


class GenerationSettings(Settings):
    """What writes the answers to generation tasks."""

    engine: Literal["own", "vllm"] = Field(
        "own",
        description="`vllm`: vLLM, for very many completions, which differ from the engine's own.",
    )
    python: ExpandedPath | None = Field(None, description="Python of an environment with vLLM.")
    window: SequenceLength | None = Field(
        None,
        description="Most tokens of a prompt with its completion. Default: the model's positions.",
    )
    memory_share: Fraction = Field(0.85, gt=0, lt=1, description="Share of GPU memory for vLLM.")
    parts: Integer = Field(
        1,
        ge=1,
        le=256,
        description="How many jobs, each on a GPU, share a checkpoint's completions.",
    )

    @model_validator(mode="after")
    def _fits_its_engine(self) -> Self:
        if (self.engine == "vllm") != (self.python is not None):
            raise ValueError(
                "`engine: vllm` and `python`, which has vLLM, go together; add or remove one"
            )
        return self

    @property
    def decoding(self) -> dict[str, str]:
        return {} if self.engine == "own" else {"engine": self.engine}


class Verification(Settings):
    """How generated answers are verified."""

    workers: Integer | None = Field(None, gt=0, le=4096, description="Processes; else one a CPU.")
    seconds: Fraction = Field(20.0, ge=0.1, le=86_400, description="Time limit of an answer.")
    memory_mb: Integer = Field(2048, ge=256, le=2**24, description="Memory of an answer, in MB.")
    max_error_share: Fraction = Field(0.01, ge=0, le=1, description="Largest share that may fail.")
    sandbox: Literal["seccomp", "none"] = Field(
        "seccomp",
        description="What confines programs; `none`: they may do all that you may.",
    )

    @property
    def processes(self) -> int:
        """Number of processes that verify; by default one for each core this process may use."""
        return self.workers or usable_cores()
