"""Where an answer ends, and where its stored text would have ended with other stop strings."""

from hypothesis import example, given
from hypothesis import strategies as st

from evaluation.scoring.answers import Stopping, StopSearch, cut_again
from evaluation.scoring.stored_completions import until_stopped
from tests.scoring.tiny import decode, decode_after

PIECES = [b"", b"a", b"b", b"ab", b"\n", b"\n\n", b" Question", b":", b"\xc3", b"\xa9", b"\xf0\x9f"]
PIECES += [b"\xa6\x8a", b"\xe2\x82\xac", b"b" * 20, b"ba\n", b"a\xc3", b"\xa9b", b"Q"]


def by_bytes(tokens: list[int]) -> str:
    return b"".join(PIECES[token] for token in tokens).decode(errors="replace")


def by_words(tokens: list[int]) -> str:
    """As sentence pieces are decoded: the space before the first word goes."""
    return by_bytes(tokens).replace("b", " ").removeprefix(" ")


@given(
    st.lists(st.integers(0, len(PIECES) - 1), max_size=120),
    st.lists(
        st.sampled_from(["\n\n\n", "aba", "é", "€", " a", "bbé", "🦊", "Question:", "\n"]),
        max_size=3,
    ),
    st.sampled_from([by_bytes, by_words]),
)
@example([1] + [0] * 80 + [2] + [0] * 80 + [1], ["aba"], by_bytes)
def test_the_search_ends_where_decoding_everything_does(tokens, strings, decode):
    """After every token the whole text is looked through, in the plain way."""
    search = StopSearch(Stopping(frozenset(), tuple(strings), lambda _, ids: decode(ids)), [])
    for count in range(1, len(tokens) + 1):
        text = decode(tokens[:count])
        stopped = any(string in text for string in strings)
        assert search.reached(tokens[:count]) == stopped
        if stopped:
            return


STOPS = st.lists(st.text("!abcd", min_size=1, max_size=3), max_size=2)


@given(st.lists(st.integers(1, 4), max_size=30), STOPS, STOPS, st.integers(1, 30))
@example([1, 2, 3, 4], ["cd"], ["d", "bc"], 9)
def test_cut_again_is_what_generating_again_gives(said, old, new, most):
    """Text, reason and tokens, of a model that writes these tokens and then ends."""

    def generate(strings: list[str]):
        stopping = Stopping(frozenset(), tuple(strings), decode_after)
        search, tokens = StopSearch(stopping, []), []
        for token in said:
            if len(tokens) == most:
                return stopping.answer([], tokens, "length")
            tokens.append(token)
            if search.reached(tokens):
                return stopping.answer([], tokens, "stop_string")
        return stopping.answer([], tokens, "eos")

    first, second = generate(old), generate(new)
    assert first.raw == decode(first.tokens)
    assert not any(string in first.text for string in old)
    found = cut_again(first.raw, first.stop_reason, new)
    if found is None:
        assert first.stop_reason == "stop_string"
        assert not any(string in first.raw for string in new)
        return
    assert found == (second.text, second.stop_reason)
    stopping = Stopping(frozenset(), tuple(new), decode_after)
    assert until_stopped(stopping, first.tokens) == len(second.tokens)
