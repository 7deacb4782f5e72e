"""What NLTK splits sentences with, and its stop words, from a package that ships them.

python -m demo.nltk_files PACKAGES TARGET
"""

import shutil
from pathlib import Path

from demo.wheels import command_line, find_wheel, unpack_file, unpack_folder

WHEEL = "llama_index_core-*.whl"
INSIDE = "llama_index/core/_static/nltk_cache"


def build_nltk_data(packages: Path, target: Path) -> None:
    """Write a folder of NLTK data with the English part of two resources."""
    wheel = find_wheel(packages, WHEEL)
    shutil.rmtree(target, ignore_errors=True)
    sentences = "tokenizers/punkt_tab/english"
    unpack_folder(wheel, f"{INSIDE}/{sentences}", target / sentences)
    words = "corpora/stopwords/english"
    unpack_file(wheel, f"{INSIDE}/{words}", target / words)


if __name__ == "__main__":
    command_line(build_nltk_data)
