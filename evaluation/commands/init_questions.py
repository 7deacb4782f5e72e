"""The questions of `init` on a terminal, each checked as soon as it is answered."""

import argparse
from collections.abc import Callable, Sequence
from typing import TypeVar

from evaluation.commands import a_pair
from evaluation.errors import ConfigError
from evaluation.settings.starting_point import OBJECTIVES, folder_note

Answer = TypeVar("Answer")


def ask(options: argparse.Namespace, check: Callable[[argparse.Namespace], None]) -> None:
    """Ask for stages, bridge, objectives and tokenizer, and set them in the options.

    Args:
        check: Raises a ConfigError where what the options say so far could not work.

    Raises:
        ConfigError: The input ended before the last answer.
    """
    print(
        "Stages in training order, each as NAME=FOLDER of its checkpoints. An empty line ends a list."
    )
    while not options.stage:
        options.stage = _list("stage", _stage)
    options.bridge = options.bridge or _answer(
        "checkpoint to compare the first one with, if any", str
    )
    if (options.bridge or len(options.stage) > 1) and not options.objective:
        print(
            f"Objectives, as `TIER [GROUP] improve|keep MARGIN`; by default {', '.join(OBJECTIVES)}."
        )

        def objective(text: str, _: Sequence[str]) -> str:
            check(argparse.Namespace(**{**vars(options), "objective": [text]}))
            return text

        options.objective = _list("objective", objective)
    tokenizer = "tokenizer, hub id or folder, if not that of the checkpoints"
    options.tokenizer = options.tokenizer or _answer(tokenizer, str)


def _stage(text: str, before: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Read a stage; say at once if its folder has no checkpoints."""
    name, folder = a_pair(text)
    if name in dict(before):
        raise ConfigError(f"{name} is there already")
    if note := folder_note(folder):
        print(f"  note: {note}")
    return name, folder


def _list(what: str, read: Callable[[str, Sequence[Answer]], Answer]) -> list[Answer]:
    """Ask until an answer is empty; each is read with those before it."""
    answers: list[Answer] = []
    while (answer := _answer(what, lambda text: read(text, answers))) is not None:
        answers.append(answer)
    return answers


def _answer(what: str, read: Callable[[str], Answer]) -> Answer | None:
    """Ask until the answer can be read; None for an empty one."""
    while True:
        try:
            text = input(f"{what}: ").strip()
            return read(text) if text else None
        except (ConfigError, argparse.ArgumentTypeError) as error:
            print(f"  {error}")
        except EOFError:
            raise ConfigError(
                "the questions were not all answered, so nothing is written"
            ) from None
