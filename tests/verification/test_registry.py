"""Every kind of verifier that a suite may ask for is there."""

import pytest

from evaluation.errors import ConfigError
from evaluation.settings.verifiers import Boxed
from evaluation.verification.registry import KINDS, VERIFIERS, complete, verify


def test_all_kinds() -> None:
    assert set(VERIFIERS) == set(KINDS)
    assert {"pattern", "boxed", "minerva", "math_verify", "ifeval", "ifbench", "program"} == set(
        KINDS
    )


def test_one_is_missing() -> None:
    few = {kind: VERIFIERS[kind] for kind in KINDS if kind != "minerva"}
    with pytest.raises(ConfigError, match=r"but the kinds are .*minerva.*register what is missing"):
        complete(few)


def test_one_by_hand() -> None:
    assert verify(Boxed(kind="boxed"), {"gold": "5"}, "\\boxed{5}").credit == 1
