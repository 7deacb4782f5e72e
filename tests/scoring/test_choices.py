import pytest

from evaluation.grading.texts import CANDIDATE_SCHEMA, candidates
from evaluation.metrics.measures import measure_questions, summarize_questions
from evaluation.prefill.caches import AnswerCandidate, Context, QuestionLine, TokenizedQuestion
from evaluation.scoring import choices
from evaluation.scoring.choices import score_questions
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.window import Request, Window
from tests.scoring import tiny


def candidate(context: int, tokens: tuple[int, ...], **sizes: int) -> AnswerCandidate:
    return AnswerCandidate(context=context, text=" text", tokens=tokens, **sizes)


def item_of(
    number: int, contexts: list[tuple[int, ...]], ends: list[tuple[int, ...]]
) -> TokenizedQuestion:
    """Candidate i follows context i, or the only one; unconditional candidates follow token 39."""
    only = len(contexts) == 1
    return TokenizedQuestion(
        id=f"quiz/{number}",
        cluster="astronomy",
        gold=1,
        contexts=tuple(Context(text="text", tokens=tokens) for tokens in (*contexts, (39,))),
        candidates=tuple(
            candidate(0 if only else i, end, chars=3 + i, bytes=4 + i) for i, end in enumerate(ends)
        ),
        unconditional=tuple(candidate(len(contexts), end, chars=3, bytes=4) for end in ends),
    )


def score(*items: TokenizedQuestion, scored: Engine | None = None, max_length: int = 32):
    """The rows that are stored of items, by their ids, and the table of candidates that they make."""
    backend = tiny.backend(scored or tiny.engine())
    window = Window(max_length, prefix=0)
    stored = score_questions(backend, {item.id: item for item in items}, window)
    assert stored.schema == choices.SCHEMA
    return stored.to_pylist(), candidates(list(map(line_of, items)), stored.to_pylist())


def line_of(item: TokenizedQuestion) -> QuestionLine:
    return QuestionLine(
        id=item.id,
        key=item.id,
        cluster=item.cluster,
        stratum=item.stratum,
        gold=item.gold,
        sizes=[(len(one.tokens), one.chars, one.bytes) for one in item.candidates],
    )


def test_candidates_are_scored_after_their_own_contexts():
    first = item_of(0, [(1, 2, 3)], [(4, 5), (6,)])
    second = item_of(1, [(1, 2), (1, 7)], [(8, 9), (8, 9)])
    rows, table = score(first, second)
    asked = [((1, 2, 3), (4, 5)), ((1, 2, 3), (6,)), ((1, 2), (8, 9)), ((1, 7), (8, 9))]
    model = tiny.model("llama")
    plain = [tiny.plain_score(model, Request(*pair)) for pair in asked]
    twins = [tiny.plain_score(model, Request((39,), end)) for _, end in asked]
    assert table.schema == CANDIDATE_SCHEMA
    assert table["logprob"].to_pylist() == pytest.approx(plain, abs=1e-4)
    assert table["unconditional"].to_pylist() == pytest.approx(twins, abs=1e-4)
    assert table["item"].to_pylist() == ["quiz/0", "quiz/0", "quiz/1", "quiz/1"]
    assert table["gold"].to_pylist() == [False, True] * 2
    assert table["tokens"].to_pylist() == [2, 1, 2, 2]
    assert table["chars"].to_pylist() == [3, 4] * 2
    by_hand = [plain[1] / 4 > plain[0] / 3, plain[3] / 4 > plain[2] / 3]
    assert [row["truncated"] for row in rows] == [0, 0]
    summary = summarize_questions(measure_questions(table, "ranked"), "per_char")
    assert summary["accuracy"] == sum(by_hand) / 2
