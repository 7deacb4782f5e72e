"""`tier4_sft_native_generations.jsonl`: what a model said, one line a prompt."""

from pathlib import Path

from pydantic import Field

from evaluation.errors import ResultsError
from evaluation.results.files import FileModel, parse_model, read_text

AGAIN = "score this checkpoint again"


class Generation(FileModel):
    """A prompt and its answer."""

    id: str = Field(description="Name of the probe.")
    category: str | None = Field(None, description="Heading it is reported under.")
    prompt: str = Field(description="The conversation as the model read it.")
    response: str = Field(description="The answer, as it was generated.")
    stop_reason: str | None = Field(None, description="`eos`, `stop_string` or `length`.")
    prompt_tokens: int | None = Field(None, ge=0, description="Tokens of the prompt.")
    response_tokens: int | None = Field(None, ge=0, description="Tokens of the answer.")


def read_generations(path: Path) -> dict[str, Generation]:
    """Answers by the id of their prompt.

    Raises:
        ResultsError: a line is no such record, or an id is there twice; names the line.
    """
    found: dict[str, Generation] = {}
    # Only a line feed ends a line: JSON leaves other separators of lines within texts as they are.
    for number, line in enumerate(read_text(path, AGAIN).split("\n"), start=1):
        if not line:
            continue
        where = path.with_name(f"{path.name}, line {number}")
        one = parse_model(where, line, Generation, AGAIN)
        if one.id in found:
            raise ResultsError(f"{where}: the id {one.id!r} is there twice; remove it and {AGAIN}")
        found[one.id] = one
    return found
