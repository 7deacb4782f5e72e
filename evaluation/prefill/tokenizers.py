"""Tokenizers, fast and slow: loaded, identified, saved with a stage's caches, and applied to text.

No special token is ever added by the tokenizer itself: BOS is put in front where the
configuration says so, and nowhere else.
"""

import contextlib
import json
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from huggingface_hub import snapshot_download
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
from transformers import AutoTokenizer, PreTrainedTokenizerBase
from transformers.tokenization_utils_sentencepiece import SentencePieceBackend

from evaluation.errors import SourceError
from evaluation.fingerprints import fingerprint, unordered
from evaluation.regular_files import check_regular, open_regular

log = logging.getLogger(__name__)

AnyTokenizer: TypeAlias = PreTrainedTokenizerBase

_NO_LIMIT = 10**30
"""Texts are cut by us, so that the tokenizer's warning of long ones would only mislead."""

_TABLES = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
"""Files that are JSON objects; all of a tokenizer's are plain files."""

_SENTENCEPIECE_FILES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")


def load_tokenizer(
    name_or_folder: str | Path, *, use_fast: bool, revision: str | None = None
) -> AnyTokenizer:
    """Load a tokenizer from the hub or a folder.

    transformers 5 turns every sentencepiece model into a fast tokenizer and ignores `use_fast`.
    So `use_fast=False` names the class that runs the sentencepiece model itself, with the model's
    own normalization (`legacy`): what transformers 4 did with a text at its start.

    Args:
        name_or_folder: Hub id, or folder.
        use_fast: Whether to load the fast tokenizer.
        revision: The hub's revision; None: `main`.

    Returns:
        The tokenizer, without a limit on the length of texts.

    Raises:
        SourceError: It cannot be loaded.
    """
    name = str(name_or_folder)
    if not Path(name).is_dir() and (name.startswith(("/", ".", "~")) or name.count("/") > 1):
        raise SourceError(f"tokenizer {name}: no such folder; give a hub id or an existing folder")
    with _one_sentence(name):
        _check_plain(Path(name))
        if use_fast:
            tokenizer = AutoTokenizer.from_pretrained(
                name, revision=revision or "main", trust_remote_code=False
            )
        else:
            file = _sentencepiece_file(name, revision)
            tokenizer = SentencePieceBackend.from_pretrained(
                str(file.parent), vocab_file=str(file), legacy=True, trust_remote_code=False
            )
    tokenizer.model_max_length = _NO_LIMIT
    return tokenizer


def _check_plain(folder: Path) -> None:
    """Raise SourceError for what is not a tokenizer's file by its kind, or not JSON by its first byte.

    A pipe would be waited for, and transformers names no file that is damaged.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        is_table = path.name in _TABLES
        try:
            if is_table or (path.exists() and not path.is_dir()):
                check_regular(path)
            if is_table:
                with open_regular(path) as file:
                    begin = file.read(1000).lstrip()
                if not begin.startswith(b"{"):
                    raise SourceError(f"{path}: is no JSON object; copy the tokenizer again")
        except OSError as error:
            raise SourceError(
                f"{path}: cannot be read ({error.strerror}); copy the tokenizer again"
            ) from None


def _sentencepiece_file(name: str, revision: str | None) -> Path:
    """Return the model of a local tokenizer, or of one of the hub, which is downloaded."""
    folder = Path(name)
    if not folder.is_dir():
        patterns = [*_SENTENCEPIECE_FILES, "*token*.json"]
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    for file in _SENTENCEPIECE_FILES:
        if (folder / file).is_file():
            return folder / file
    raise SourceError(
        f"tokenizer {name}: `use_fast: false` needs a sentencepiece model, but there is none of "
        f"{', '.join(_SENTENCEPIECE_FILES)}; set `use_fast: true`"
    )


@contextlib.contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    """Turn what transformers and the hub raise for a tokenizer into one SourceError."""
    try:
        yield
    except SourceError:
        raise
    except (AttributeError, TypeError) as error:  # no words for a user, and no file's name
        log.debug("where it happened:", exc_info=True)
        raise SourceError(
            f"tokenizer {name} cannot be loaded: tokenizer.json or tokenizer_config.json does not hold "
            "what it should; copy the tokenizer again (`python -m evaluation -v …` shows where)"
        ) from error
    except Exception as error:
        reason = " ".join(str(error).split())
        if isinstance(error, GatedRepoError | RepositoryNotFoundError) or "gated repo" in reason:
            why = "it is not on the hub, or not open to you: check the name, or run `hf auth login`"
        elif "trust_remote_code" in reason:
            why = "it needs code of its own (`auto_map`), which is never run; use one without"
        elif isinstance(error, ConnectionError) or re.search(r"connect|offline|outgoing", reason):
            why = "the hub cannot be reached: run prefill where it can, or give a local folder"
        else:
            why = (reason or type(error).__name__)[:300]
        raise SourceError(f"tokenizer {name} cannot be loaded: {why}") from error


def tokenizer_fingerprint(tokenizer: AnyTokenizer) -> str:
    """Return the identity of what a tokenizer does with text, wherever it was loaded from.

    Made of its vocabulary, merges, normalization and added tokens, and of BOS and EOS; not of
    its name, its padding, its chat template, nor what it would add around a text by itself.

    Args:
        tokenizer: A fast or slow tokenizer.

    Returns:
        The fingerprint.
    """
    if tokenizer.is_fast:
        model = json.loads(tokenizer.backend_tokenizer.to_str())
        for unused in ("version", "truncation", "padding", "post_processor"):
            model.pop(unused, None)
    else:
        pieces = getattr(tokenizer, "sp_model", None)
        model = {
            "vocabulary": tokenizer.get_vocab(),
            "added": {str(n): repr(token) for n, token in tokenizer.added_tokens_decoder.items()},
            "sentencepiece": None if pieces is None else pieces.serialized_model_proto().hex(),
        }
    return fingerprint([unordered(model), tokenizer.bos_token_id, tokenizer.eos_token_id])


def vocabulary_size(tokenizer: AnyTokenizer) -> int:
    """Return how many rows an embedding needs.

    Args:
        tokenizer: A fast or slow tokenizer.

    Returns:
        The largest id plus one.
    """
    return int(max(tokenizer.get_vocab().values())) + 1


def bos_ids(tokenizer: AnyTokenizer, prepend_bos: bool) -> list[int]:
    """Return what stands before every text.

    Args:
        tokenizer: The stage's tokenizer.
        prepend_bos: Whether BOS is configured to stand there.

    Returns:
        BOS's id, or nothing.

    Raises:
        SourceError: BOS is requested, but the tokenizer has none.
    """
    if not prepend_bos:
        return []
    if tokenizer.bos_token_id is None:
        raise SourceError(
            f"tokenizer {tokenizer.name_or_path} has no BOS token, but `tokenizer.prepend_bos` is "
            "true; set it to false or choose the tokenizer the model was trained with"
        )
    return [int(tokenizer.bos_token_id)]


def separator_id(tokenizer: AnyTokenizer) -> int:
    """Return the token that ends a document in packed text, EOS.

    Args:
        tokenizer: The stage's tokenizer.

    Returns:
        The token's id.

    Raises:
        SourceError: The tokenizer has no EOS.
    """
    if tokenizer.eos_token_id is None:
        raise SourceError(
            f"tokenizer {tokenizer.name_or_path} has no EOS token, which separates documents in "
            "packed text; name it in its tokenizer_config.json (`eos_token`)"
        )
    return int(tokenizer.eos_token_id)


def lacking_tokens(tokenizer: AnyTokenizer, tokens: Sequence[str]) -> list[str]:
    """Return which texts are not read as one token each.

    Args:
        tokenizer: The stage's tokenizer.
        tokens: Special tokens, written out.

    Returns:
        Those that the tokenizer does not have.
    """
    found = zip(tokens, encode(tokenizer, tokens), strict=True)
    return [text for text, ids in found if tokenizer.convert_ids_to_tokens(ids) != [text]]


def encode(tokenizer: AnyTokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Return the ids of each text, with nothing added; special tokens in it count as such.
    lm-evaluation-harness gives the same ids with add_special_tokens=False.

    Args:
        tokenizer: The stage's tokenizer.
        texts: Texts, which may be empty.

    Returns:
        Token ids of each text, in order.
    """
    if not texts:
        return []
    return list(tokenizer(list(texts), add_special_tokens=False)["input_ids"])


def encode_pair(
    tokenizer: AnyTokenizer, context: str, continuation: str
) -> tuple[list[int], list[int]]:
    """Return the ids of a context and of what follows it, divided as by `encode_pairs`.

    Args:
        tokenizer: The stage's tokenizer.
        context: The text before; an empty one has no ids.
        continuation: The text that follows.

    Returns:
        Ids of the context, and of the continuation.
    """
    return encode_pairs(tokenizer, [(context, continuation)])[0]


def encode_pairs(
    tokenizer: AnyTokenizer, pairs: Sequence[tuple[str, str]]
) -> list[tuple[list[int], list[int]]]:
    """Return the ids of contexts and continuations, divided as lm-evaluation-harness divides them.

    Spaces at the context's end go to the continuation, for most tokenizers put a space into the
    token of the word behind it. Both are encoded as one text, and the continuation is what comes
    after as many tokens as the context has by itself: it may lack its first characters where a
    token spans the border, or be empty. Each distinct text is encoded once.

    Args:
        tokenizer: The stage's tokenizer.
        pairs: Contexts, which may be empty, and continuations.

    Returns:
        For each pair, ids of the context, and of the continuation.
    """
    divided = [(context.rstrip(), context + continuation) for context, continuation in pairs]
    texts = list(dict.fromkeys(text for pair in divided for text in pair if text))
    ids = dict(zip(texts, encode(tokenizer, texts), strict=True)) | {"": []}
    return [(ids[alone], ids[whole][len(ids[alone]) :]) for alone, whole in divided]
