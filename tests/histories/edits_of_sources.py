"""What may happen to data behind `mirrors` and to the tokenizer's files."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.histories.model import HERE, File, Model
from tests.histories.registry import edit

VARIANTS = (0, 1, 2, 3, 4)
"""As it was; rows in another order; all rows other; a row more; one row corrected."""

HOW = ("in place", "renamed")
"""Data are current by name, size and time, so an edit that keeps all three is not noticed."""


def _corrections(model: Model) -> Iterable[tuple[Any, ...]]:
    for dataset in model.config["mirrors"]:
        for path, file in model.behind(dataset).items():
            for variant in VARIANTS:
                if variant != file.variant:
                    yield from ((path, variant, how) for how in HOW)


@edit(_corrections)
def data_corrected(model: Model, path: str, variant: int, how: str) -> None:
    """One of the files behind a mirror."""
    model.files[path] = _rewritten(model, model.files[path], how, variant)


def _rewritten(model: Model, file: File, how: str, variant: int) -> File:
    return File(variant, model.now(), file.number + how.startswith("renamed"))


@edit(lambda model: [(dataset,) for dataset in model.config["mirrors"]])
def data_touched(model: Model, dataset: str) -> None:
    _touched(model, model.behind(dataset))


def _touched(model: Model, files: dict[str, File]) -> None:
    now = model.now()
    model.files |= {path: replace(file, written=now) for path, file in files.items()}


@edit(lambda model: [(dataset,) for dataset in model.config["mirrors"]])
def data_cloned(model: Model, dataset: str) -> None:
    """Other files of other times with equal bytes."""
    now = model.now()
    for path, file in model.behind(dataset).items():
        model.files[path] = File(file.variant, now, file.number + 1)


@edit(
    lambda model: [
        (dataset, folder)
        for dataset, place in model.config["mirrors"].items()
        for folder in ("data", "data_b", "data_c")
        if f"/{folder}/" not in place
    ]
)
def mirror_led_elsewhere(model: Model, dataset: str, folder: str) -> None:
    """Files of equal names and sizes: in `data_b` other rows, in `data_c` equal bytes."""
    name = dataset.rpartition("/")[2]
    model.config["mirrors"][dataset] = f"{HERE}/{folder}/{name}"


TOKENIZER = ("tokenizer/tokenizer.json", "tokenizer/chat_template.jinja")


@edit(lambda model: [(path, how) for path in TOKENIZER for how in HOW])
def tokenizer_changed(model: Model, path: str, how: str) -> None:
    """Two letters change their ids; or the template of chats is another."""
    file = model.files[path]
    model.files[path] = _rewritten(model, file, how, 1 - file.variant)


@edit(lambda model: [()])
def tokenizer_touched(model: Model) -> None:
    _touched(model, {p: file for p, file in model.files.items() if p.startswith("tokenizer/")})
