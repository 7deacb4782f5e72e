"""lighteval with LiveCodeBench, whose tests it unpickles: those of the mirrors are our own."""

from typing import Any

from evaluation.providers.adapters import lighteval
from evaluation.providers.adapters.contract import main


def _render(request: Any) -> Any:
    lighteval._REFUSED.pop("lcb")
    return lighteval.render(request)


if __name__ == "__main__":
    main("lighteval", _render, lighteval.scorer)
