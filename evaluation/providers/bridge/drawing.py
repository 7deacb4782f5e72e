"""What a provider leaves to chance is drawn from a text, so that two runs draw the same."""

import random
import sys
import zlib


def seed(text: str) -> None:
    """Seeds the generators that tasks and metrics draw from."""
    import numpy as np

    random.seed(text)
    np.random.seed(zlib.crc32(text.encode()))
    if (langdetect := sys.modules.get("langdetect")) is not None:
        langdetect.DetectorFactory.seed = 0
