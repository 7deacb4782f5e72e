"""Notes on the comparisons of a stage's steps with their bridge, each once."""

from collections.abc import Mapping

from evaluation.results.deltas_file import StepDeltas


def notes_by_steps(contents: Mapping[int, StepDeltas]) -> list[tuple[str, str]]:
    """Return each note of some steps once, with the steps that it applies to: `all` or a list of them."""
    steps: dict[str, list[str]] = {}
    for step, content in contents.items():
        for note in content.notes:
            steps.setdefault(note, []).append(str(step))
    return [
        (note, "all" if len(step) == len(contents) else ", ".join(step))
        for note, step in steps.items()
    ]


def warnings_in_words(contents: Mapping[int, StepDeltas]) -> list[str]:
    """Return each note of some steps once, with its steps in parentheses."""
    return [f"{note} ({_of_steps(steps)})" for note, steps in notes_by_steps(contents)]


def _of_steps(steps: str) -> str:
    if steps == "all":
        return "all steps"
    return f"steps {steps}" if "," in steps else f"step {steps}"
