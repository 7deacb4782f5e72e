"""A model spread over several processes, one for each GPU, as transformers' plan for its class says.

The plan (`tp_plan`) cuts projections of attention and of the MLP so that each process computes some
of the heads and of the inner units, and sums the results once behind each of the two. Embedding, norms
and output layer are whole in each process: they then see the same numbers, bit for bit.
"""

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.placement_types import _StridedShard
from transformers import PreTrainedModel
from transformers.distributed.tensor_parallel import apply_tensor_parallelism

from evaluation.checkpoints.spans import Kept
from evaluation.errors import UnsupportedCheckpoint
from evaluation.settings.computing import RANKS


def split_model(model: PreTrainedModel, mesh: DeviceMesh) -> dict[str, Kept]:
    """Cuts a model without memory of its own; says what this process holds of which parameters.

    Raises UnsupportedCheckpoint for a class that transformers has no plan for, or one unknown here.
    """
    plan = _plan(model)
    apply_tensor_parallelism(model, mesh, plan)
    found = {}
    for name, parameter in model.named_parameters():
        if isinstance(parameter, DTensor):
            found[name] = _kept(name, parameter, mesh, type(model).__name__)
    if not found:
        raise UnsupportedCheckpoint(
            f"transformers does not say how {type(model).__name__} is spread over several GPUs; set "
            f"{RANKS}: 1"
        )
    return found


def _plan(model: PreTrainedModel) -> dict[str, str]:
    """Style of each module and parameter by name; embedding and output layer stay whole."""
    plan: dict[str, str] = model._expand_parallel_plan(dict(model.tp_plan))
    return {name: style for name, style in plan.items() if ".layers." in name}


def _kept(name: str, parameter: DTensor, mesh: DeviceMesh, model: str) -> Kept:
    (placement,) = parameter.placements
    if not isinstance(placement, Shard | _StridedShard):
        raise UnsupportedCheckpoint(
            f"transformers spreads {name} of {model} over several GPUs in a way that is not known "
            f"here ({placement}); set {RANKS}: 1"
        )
    blocks = placement.split_factor if isinstance(placement, _StridedShard) else 1
    dimension = placement.dim % parameter.ndim
    block = parameter.shape[dimension] // blocks
    part, rank = block // mesh.size(), mesh.get_local_rank()
    starts = [number * block + rank * part for number in range(blocks)]
    return Kept(dimension, tuple((start, start + part) for start in starts))


def spread_as(old: torch.Tensor, local: torch.Tensor) -> DTensor:
    """This process's part of a tensor that is spread as another of the same shape."""
    assert isinstance(old, DTensor)
    return DTensor.from_local(
        local,
        old.device_mesh,
        old.placements,
        run_check=False,
        shape=old.shape,
        stride=old.stride(),
    )
