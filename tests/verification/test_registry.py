"""Every kind of verifier that a suite may ask for is there, with all that belongs to it."""

import pytest

from evaluation.errors import ConfigError
from evaluation.verification.registry import LIBRARIES, VERIFIERS, complete


def test_one_is_missing() -> None:
    few = tuple(entry for entry in VERIFIERS.values() if entry.kind != "minerva")
    with pytest.raises(ConfigError, match=r"6 entries for 7 kinds; register .*also for Minerva"):
        complete(few)


def test_what_takes_long_to_import_can_be_loaded() -> None:
    libraries = {entry.library for entry in VERIFIERS.values()} - {""}
    assert libraries == set(LIBRARIES)
    for library in libraries:
        LIBRARIES[library]()
