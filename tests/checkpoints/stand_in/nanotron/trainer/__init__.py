from typing import Any

from nanotron.models import LlamaForTraining, Qwen2ForTraining

CONFIG_TO_MODEL_CLASS = {"LlamaConfig": LlamaForTraining, "Qwen2Config": Qwen2ForTraining}


def mark_tied_parameters(model: Any, parallel_context: Any, parallel_config: Any = None) -> None:
    assert parallel_config is not None
