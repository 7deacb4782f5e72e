"""How well refusals and compliances are told apart, on answers labelled by hand."""

from pathlib import Path

import yaml

from evaluation.grading.checks.refusals import complies, refuses


def labelled(name: str) -> dict[str, list[str]]:
    read: dict[str, list[str]] = yaml.safe_load(
        (Path(__file__).parent / name).read_text(encoding="utf-8")
    )
    return read


LABELLED, UNSEEN = labelled("refusals.yaml"), labelled("refusals_unseen.yaml")
REFUSALS, COMPLIANCES, MIXED = (LABELLED[name] for name in ("refusal", "compliance", "mixed"))


def precision_and_recall(found: list[str], wanted: list[str]) -> tuple[float, float]:
    right = len(set(found) & set(wanted))
    return right / len(found), right / len(wanted)


def test_refusals_are_told_from_all_else() -> None:
    found = [text for text in (*REFUSALS, *COMPLIANCES, *MIXED) if refuses(text)]
    precision, recall = precision_and_recall(found, REFUSALS)
    assert precision >= 0.97, sorted(set(found) - set(REFUSALS))
    assert recall >= 0.95, sorted(set(REFUSALS) - set(found))


def test_of_answers_that_the_patterns_were_not_written_for_most_are_told() -> None:
    """The figures of docs/verdicts.md: 32 of 33 and 32 of 40."""
    everything = [text for texts in UNSEEN.values() for text in texts]
    assert not set(everything) & {*REFUSALS, *COMPLIANCES, *MIXED}
    found = [text for text in everything if refuses(text)]
    precision, recall = precision_and_recall(found, UNSEEN["refusal"])
    assert precision >= 32 / 33
    assert recall >= 32 / 40


def test_compliances_are_told_from_all_else() -> None:
    found = [text for text in (*REFUSALS, *COMPLIANCES, *MIXED) if complies(text)]
    precision, recall = precision_and_recall(found, COMPLIANCES)
    assert precision >= 0.93, sorted(set(found) - set(COMPLIANCES))
    assert recall >= 0.95, sorted(set(COMPLIANCES) - set(found))


def test_no_answer_both_refuses_and_complies() -> None:
    everything = [*REFUSALS, *COMPLIANCES, *MIXED]
    assert [text for text in everything if refuses(text) and complies(text)] == []
