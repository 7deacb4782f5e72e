"""lighteval with LiveCodeBench, whose tests it unpickles: those of the mirrors are our own."""

from typing import Any

from evaluation.providers.adapters import lighteval, lighteval_tasks
from evaluation.providers.adapters.contract import main


def _render(request: Any, folder: Any) -> Any:
    lighteval_tasks._REFUSED_MODULES.pop("lcb")
    return lighteval._render(request, folder)


if __name__ == "__main__":
    main("lighteval", _render, lighteval._scorer, lighteval._check, ())
