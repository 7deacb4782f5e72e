"""What is evaluated: Tier2 slices, Tier3 tasks and Tier4 probes, read from `task_suites/*.yaml`.

Templates are Jinja2 over a dataset row. An *expression* is Jinja2 without braces and keeps its
type, so `choices: choices.text` is a list and `gold: label|int` an integer.
"""

from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from evaluation.errors import ConfigError
from evaluation.settings.checks import Check
from evaluation.settings.model import ExpandedPath, Settings, one_sentence
from evaluation.settings.tiers import TIERS

Normalization = Literal["raw", "per_char", "per_byte", "per_token", "pmi"]


class Source(Settings):
    """Rows of a dataset on the hub, in a mirror of it, or in local files."""

    VIEWS: ClassVar[frozenset[str]] = frozenset({"group", "streaming"})
    """Keys that change neither what is fetched nor what is scored."""

    dataset: str | None = Field(None, description="Hub id, also the name under `mirrors`.")
    config: str | None = Field(None, description="Configuration (subset) of the dataset.")
    split: str = Field("train", description="Split to read.")
    revision: str | None = Field(None, description="Commit or branch of the dataset on the hub.")
    data_files: tuple[str, ...] = Field((), description="Files inside the dataset's repository.")
    files: tuple[ExpandedPath, ...] = Field(
        (), description="Local Parquet, JSONL or text files, in place of a dataset."
    )
    streaming: bool = Field(
        False, description="Read row by row; falls back to a download where streaming fails."
    )

    def definition(self) -> dict[str, Any]:
        """All that decides what is fetched and scored."""
        return self.model_dump(mode="json", exclude=set(self.VIEWS))

    @model_validator(mode="after")
    def _one_origin(self) -> "Source":
        if (self.dataset is None) == (not self.files):
            raise ValueError("give either `dataset` or `files`")
        return self


class Slice(Source):
    """Text that is packed into token blocks and scored by perplexity."""

    text: str = Field("text", description="Field that is the text, or a template over fields.")
    tokens: int = Field(5_000_000, gt=0, description="Tokens to keep (whole blocks).")
    skip_documents: int = Field(0, ge=0, description="Leading documents to leave out.")
    seed: int | None = Field(None, description="Shuffles the documents before they are taken.")
    group: str | None = Field(None, description="Name that objectives refer to, e.g. `hq`.")


class Task(Source):
    """Questions whose candidate answers are ranked by log-likelihood (cloze formulation)."""

    VIEWS: ClassVar[frozenset[str]] = Source.VIEWS | {"primary"}

    configs: tuple[str, ...] = Field(
        (), description="Several configurations read as one task, e.g. MMLU's subjects."
    )
    let: dict[str, str] = Field(
        {}, description="Expressions computed first, in order, for use in the templates."
    )
    choices: str = Field(description="Expression: the list of candidate answers.")
    gold: str = Field(description="Expression: index of the right candidate.")
    context: str = Field(description="Template; `choice` and `index` are the candidate at hand.")
    continuation: str = Field(" {{ choice }}", description="Template of what is scored.")
    cluster: str | None = Field(
        None, description="Template: groups that were drawn, e.g. the passage a question is about."
    )
    stratum: str | None = Field(
        None, description="Template: groups of a fixed list, e.g. the subject of an exam."
    )
    unconditional_context: str | None = Field(
        None, description="Template of the context that `pmi` subtracts, e.g. `Answer:`."
    )
    primary: Normalization = Field("raw", description="Normalization of the task's accuracy.")
    limit: int = Field(12_000, gt=0, description="Items at most, spread evenly over `configs`.")
    num_fewshot: int = Field(0, ge=0, description="Solved examples before every question.")
    fewshot_split: str = Field("train", description="Split the examples are taken from.")
    fewshot_seed: int | None = Field(None, description="Draws them; the first ones if not given.")
    description: str = Field("", description="Template put before the examples.")
    group: str | None = Field(None, description="Name that objectives refer to.")

    @model_validator(mode="after")
    def _consistent(self) -> "Task":
        if self.config is not None and self.configs:
            raise ValueError("give either `config` or `configs`")
        if self.primary == "pmi" and self.unconditional_context is None:
            raise ValueError("`primary: pmi` needs `unconditional_context`")
        return self


class Message(Settings):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"] = Field(description="Who speaks.")
    content: str = Field(description="What is said.")


class Probe(Settings):
    """A prompt for an SFT model and the checks its answer must pass."""

    category: str = Field(description="Heading it is reported under.")
    messages: tuple[Message, ...] = Field(min_length=1, description="The conversation so far.")
    checks: tuple[Check, ...] = Field(min_length=1, description="What the answer must pass.")
    max_new_tokens: int = Field(256, gt=0, description="Tokens of the answer at most.")

    def definition(self) -> dict[str, Any]:
        """What the model is asked; its answer is stored, and graded whenever the checks change."""
        return self.model_dump(mode="json", include={"messages", "max_new_tokens"})

    @model_validator(mode="after")
    def _asks(self) -> "Probe":
        if self.messages[-1].role != "user":
            raise ValueError("the last message must be the user's, as the model answers it")
        return self


class Suite(Settings):
    """Slices, tasks and probes under their names; `extends` adds another suite's."""

    extends: str | None = Field(None, description="Suite whose items come first.")
    attention: Literal["block", "document"] = Field(
        "block", description="What a token of a packed block may look at."
    )
    chat_template: str | None = Field(
        None, description="Jinja2 chat template of the probes; the tokenizer's own if not given."
    )
    stop: tuple[str, ...] = Field((), description="Strings at which an answer is cut.")
    slices: dict[str, Slice] = Field({}, description="Tier2: texts by name.")
    tasks: dict[str, Task] = Field({}, description="Tier3: tasks by name.")
    probes: dict[str, Probe] = Field({}, description="Tier4: prompts by name.")


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C reads a list of thousands of steps nine times faster; every job does."""


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a YAML mapping; raises ConfigError naming file, line and what is wrong."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected keys and values at the top level")
    return content


def load_suite(folder: Path, name: str, _below: tuple[str, ...] = ()) -> Suite:
    """Reads `folder/name.yaml` with everything it extends; items keep their order.

    Raises ConfigError for a missing file, an unknown key, a circle, or a name given twice.
    """
    path = folder / f"{name}.yaml"
    if name in _below:
        raise ConfigError(
            f"{path}: suites extend each other in a circle: {' > '.join((*_below, name))}"
        )
    try:
        suite = Suite.model_validate(read_yaml(path))
    except ValidationError as error:
        raise one_sentence(error, str(path)) from None
    if suite.extends is None:
        return suite
    base = load_suite(folder, suite.extends, (*_below, name))
    return merge_suites([(suite.extends, base), (name, suite)], folder)


def merge_suites(named: list[tuple[str, Suite]], folder: Path) -> Suite:
    """One suite with the items of all; scalar settings come from the last that gives them."""
    sections = [tier.section for tier in TIERS.values()]
    merged: dict[str, Any] = {section: {} for section in sections}
    for name, suite in named:
        for kind in sections:
            items = getattr(suite, kind)
            twice = sorted(merged[kind].keys() & items.keys())
            if twice:
                raise ConfigError(
                    f"{folder / name}.yaml: {kind}.{twice[0]}: this name is already used by a suite "
                    "beside it or one it extends; rename one of them"
                )
            merged[kind].update(items)
        given = suite.model_dump(include={"attention", "chat_template", "stop"}, exclude_unset=True)
        merged.update(given)
    return Suite(**merged)
