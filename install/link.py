"""The package itself in a wheel, `evaluation/checkout/evaluation/`, for a Python that finds only this."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
__path__ = [str(_PACKAGE)]
exec((_PACKAGE / "__init__.py").read_text(encoding="utf-8"))
