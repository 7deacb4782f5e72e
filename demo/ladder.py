"""A ladder of checkpoints whose order is known: one model, with less and less noise added.

    python -m demo.ladder CONFIG MODEL

This demonstrates the workflow; it is not training. All checkpoints add the same noise, drawn once,
in different amounts, so that each lies on a straight line from a spoilt model to the real one. The
first step of stage 4 is noisier than the checkpoint that it is compared with: a planted regression,
which the bridge must find.
"""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from demo.nanotron_writer import import_hf
from demo.wheels import command_line
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages

SEED = 1


@dataclass(frozen=True)
class Rung:
    """One checkpoint: `noise` is relative to the root mean square of each weight matrix."""

    stage: str
    step: int
    noise: float
    tp: int = 1


LADDER = (
    Rung("stage1", 1000, 0.22),
    Rung("stage1", 2000, 0.18, tp=3),
    Rung("stage2", 1000, 0.16),
    Rung("stage2", 2000, 0.14, tp=3),
    Rung("stage3", 500, 0.08),
    Rung("stage3", 1000, 0.05, tp=3),
    Rung("stage4", 100, 0.09),  # the planted regression
    Rung("stage4", 200, 0.0, tp=3),
)

SLOW = {1000: ("stage1", 2000), 2000: ("stage2", 1000)}
"""Where on the ladder an ablation of stage 2 stands that learns half as fast: its checkpoints are
links, and what they would be scored on has been."""


def build_ladder(config: Path, model: Path) -> None:
    """Writes every checkpoint that is not there yet where the configuration expects it."""
    plans = plan_stages(load_config(config))
    for rung in LADDER:
        plan = plans[rung.stage]
        if not plan.checkpoint(rung.step).exists():
            amount = f"noise {rung.noise:.2f}, tp {rung.tp}"
            print(f"{rung.stage} step {rung.step}: {amount}", flush=True)
            _write_rung(rung, plan, model)
    for step, (stage, its_step) in SLOW.items():
        link = plans["stage2_slow"].checkpoint(step)
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(plans[stage].checkpoint(its_step).resolve())


def _write_rung(rung: Rung, plan: StagePlan, model: Path) -> None:
    target = Path(plan.stage.checkpoints)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".noisy.") as folder:
        noisy = Path(folder)
        shutil.copy(model / "config.json", noisy)
        weights = dict(noisy_weights(model / "model.safetensors", rung.noise))
        save_file(weights, noisy / "model.safetensors", metadata={"format": "pt"})
        import_hf(
            noisy,
            target,
            tp=rung.tp,
            step=rung.step,
            sequence_length=plan.sequence_length,
            tokenizer_name=plan.tokenizer.name,
        )


def noisy_weights(weights: Path, noise: float) -> Iterator[tuple[str, torch.Tensor]]:
    """Each tensor in bfloat16, matrices with Gaussian noise added."""
    generator = torch.Generator().manual_seed(SEED)
    with safe_open(weights, framework="pt") as file:
        for name in sorted(file.keys()):
            tensor = file.get_tensor(name).float()
            if tensor.ndim == 2:  # the norms are few and touchy, and left as they are
                deviation = float(torch.linalg.vector_norm(tensor)) / tensor.numel() ** 0.5
                direction = torch.randn(tensor.shape, generator=generator)
                tensor.add_(direction, alpha=noise * deviation)
            yield name, tensor.to(torch.bfloat16)


if __name__ == "__main__":
    command_line(build_ladder)
