"""Average checkpoints: the mean of their weights becomes a Hugging Face folder, which a stage can list."""

import tempfile
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import torch
from safetensors import SafetensorError

from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, reason_of

_FREE = tuple("_ arch bos_ dtype eos_ initial max_pos pad_ transformers use_cache".split())


def write_mean(
    paths: Sequence[Path], weights: Sequence[float], output: Path, use_mup: bool | None = None
) -> None:
    """Write the weighted mean of checkpoints, with the configuration of the last; or raise CheckpointError.

    It is computed in float32 (of float64 in that), and saved in their dtype, or one that holds all.
    """
    if output.exists():
        raise CheckpointError(f"{output}: is there already; remove it or choose another")
    *others, last = [open_checkpoint(path, use_mup=use_mup) for path in paths]
    dtype = reduce(torch.promote_types, (getattr(torch, one.dtype) for one in (*others, last)))
    exact = torch.promote_types(dtype, torch.float32)
    model, total = load_model(last, dtype=dtype), weights[-1]
    mean = {name: part.to(exact) for name, part in model.named_parameters()}
    ours = model.config.to_dict()
    for one, weight in zip(others, weights, strict=False):
        other, total = load_model(one, dtype=dtype), total + weight
        theirs = other.config.to_dict()
        if keys := [k for k in ours if ours[k] != theirs.get(k) and not k.startswith(_FREE)]:
            raise CheckpointError(
                f"{one.path}: another model than {last.path}, by `{keys[0]}`; leave one out"
            )
        for name, part in other.named_parameters():
            mean[name].lerp_(part.to(exact), weight / total)  # equal ones stay the same to the bit
    model.load_state_dict(mean, strict=False)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=output.parent, ignore_cleanup_errors=True) as folder:
            written = Path(folder, output.name)
            model.save_pretrained(written)
            for path in written.iterdir():  # safetensors makes files that only their owner can read
                path.chmod(written.stat().st_mode & 0o666)
            written.rename(output)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{output}: cannot be written ({reason_of(error)})") from None
