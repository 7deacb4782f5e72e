import pytest
import torch

from evaluation.scoring.engine.head import Head


def head_of(*, bias: bool = False, rows: int | None = None, vocabulary: int = 30) -> Head:
    torch.manual_seed(1)
    head = Head(torch.nn.Linear(8, vocabulary, bias=bias).requires_grad_(False))
    head.rows = rows or head.rows
    return head


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_logprobs_are_those_of_log_softmax(bias, rows):
    head = head_of(bias=bias, rows=rows)
    hidden = torch.randn(7, 8)
    query = torch.tensor([0, 0, 0, 1, 3, 3, 6])  # queries without a pair, and with several
    token = torch.tensor([0, 5, 29, 3, 3, 4, 8])
    scored = head.score(hidden, query, token)
    logits = hidden @ head.weight.T + (head.bias if bias else 0)
    expected = logits.double().log_softmax(-1)[query, token]
    torch.testing.assert_close(scored.logprob.double(), expected, atol=1e-6, rtol=0)
    assert scored.is_greedy.tolist() == (logits.argmax(-1)[query] == token).tolist()


def test_large_logits_neither_overflow_nor_lose_precision():
    head = head_of()
    hidden = torch.randn(4, 8) * 500
    query = torch.arange(4)
    token = (hidden @ head.weight.T).argmin(-1)
    scored = head.score(hidden, query, token)
    expected = (hidden @ head.weight.T).double().log_softmax(-1)[query, token]
    torch.testing.assert_close(scored.logprob.double(), expected, atol=0, rtol=1e-5)
