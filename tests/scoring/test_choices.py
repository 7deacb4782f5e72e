import pytest

from evaluation.prefill.caches import AnswerCandidate, Context, TokenizedQuestion
from evaluation.scoring import choices
from evaluation.scoring.choices import score_questions
from evaluation.scoring.window import Request, Window
from tests.scoring import tiny


def item_of(
    number: int, contexts: list[tuple[int, ...]], ends: list[tuple[int, ...]]
) -> TokenizedQuestion:
    """Candidate i follows context i, or the only one; unconditional candidates follow token 39."""
    only = len(contexts) == 1

    def candidate(context: int, end: tuple[int, ...]) -> AnswerCandidate:
        return AnswerCandidate(context=context, text="", tokens=end, chars=1, bytes=1)

    return TokenizedQuestion(
        id=f"quiz/{number}",
        gold=1,
        cluster=None,
        contexts=tuple(Context(text="text", tokens=tokens) for tokens in (*contexts, (39,))),
        candidates=tuple(candidate(0 if only else i, end) for i, end in enumerate(ends)),
        unconditional=tuple(candidate(len(contexts), end) for end in ends) if number else None,
    )


def test_candidates_are_scored_after_their_own_contexts():
    items = [
        item_of(0, [(1, 2, 3)], [(4, 5), (6,)]),
        item_of(1, [(1, 2), (1, 7)], [(8, 9), (8, 9)]),
        item_of(2, [tuple(range(8))], [(8, 9), (9, 8)]),
    ]
    model = tiny.model("llama")
    table = score_questions(tiny.engine(), {item.id: item for item in items}, Window(8, 0, None))
    assert table.schema == choices.SCHEMA
    for row, item in zip(table.to_pylist(), items, strict=True):
        assert row["key"] == item.id
        plain = [
            tiny.plain_score(model, Request(item.contexts[one.context].tokens[-7:], one.tokens))
            for one in item.candidates
        ]
        assert row["logprob"] == pytest.approx(plain, abs=1e-4)
        twins = [tiny.plain_score(model, Request((39,), one.tokens)) for one in item.candidates]
        assert row["unconditional"] == (
            pytest.approx(twins, abs=1e-4) if item is not items[0] else None
        )
    assert table["truncated"].to_pylist() == [0, 0, 2]
