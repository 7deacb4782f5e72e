"""lm-evaluation-harness without its metrics, and without the beginnings of answers that it adds."""

import sys
from types import ModuleType
from typing import Any

from evaluation.providers.adapters import lm_eval
from evaluation.providers.adapters.contract import main


class _NoMetrics(ModuleType):
    """Stands in for the package `evaluate`, whose metrics the modules of such tasks load and try."""

    def load(self, *_: Any, **__: Any) -> Any:
        return self

    def compute(self, **_: Any) -> Any:
        return {"pass@1": 0.0}, {}


def _render(request: Any) -> Any:
    from lm_eval.api.task import ConfigurableTask

    sys.modules["evaluate"] = _NoMetrics("evaluate")
    lm_eval._check, lm_eval._without_fetched_metrics = lambda *_: None, lambda *_: None
    ConfigurableTask.doc_to_prefix = lambda *_: None
    return lm_eval.render(request)


if __name__ == "__main__":
    main("lm_eval", _render, lm_eval.scorer)
