"""A ladder of checkpoints whose order is known: one model, with less and less noise added.

    python -m demo.ladder CONFIG MODEL

This demonstrates the workflow; it is not training. All checkpoints add the same noise, drawn once, in
different amounts, so that each lies on a straight line from a spoilt model to the real one. The first step
of stage 4 is noisier than the checkpoint that it is compared with: a planted regression, which the bridge
must find.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel

from demo.nanotron_writer import write_checkpoint
from demo.wheels import command_line
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.pretrained import load_pretrained
from evaluation.settings.config import load_config
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
    Rung("stage1", 1000, 0.16),
    Rung("stage2", 1000, 0.14),
    Rung("stage2", 2000, 0.12, tp=3),
    Rung("stage3", 1000, 0.05),
    Rung("stage4", 100, 0.08, tp=3),  # the planted regression
    Rung("stage4", 200, 0.0),
)


def build_ladder(config: Path, model: Path) -> None:
    """Write every checkpoint that is not there yet where the configuration expects it."""
    plans = plan_stages(load_config(config))
    missing = [rung for rung in LADDER if not plans[rung.stage].checkpoint(rung.step).exists()]
    if not missing:
        return
    real = load_pretrained(open_checkpoint(model), torch.float32)
    noise = draw_noise(real)
    for rung in missing:
        plan = plans[rung.stage]
        print(f"{rung.stage} step {rung.step}: noise {rung.noise:.2f}, tp {rung.tp}", flush=True)
        write_checkpoint(
            real.config,
            dict(noisy_weights(real, noise, rung.noise)),
            Path(plan.stage.checkpoints),
            tp=rung.tp,
            step=rung.step,
            sequence_length=plan.sequence_length,
            tokenizer_name=plan.tokenizer.name,
        )


@torch.no_grad()
def draw_noise(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """Return Gaussian noise for each matrix, by its name, in the size of its weights."""
    generator = torch.Generator().manual_seed(SEED)
    matrices = {name: weight for name, weight in model.named_parameters() if weight.ndim == 2}
    return {  # the norms are few and touchy, and left as they are
        name: torch.randn(weight.shape, generator=generator).mul_(weight.square().mean().sqrt())
        for name, weight in matrices.items()
    }


def noisy_weights(
    model: PreTrainedModel, noise: dict[str, torch.Tensor], amount: float
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield each tensor in bfloat16, matrices with that much of the noise added."""
    tied = {id(weight): name for name, weight in reversed([*model.named_parameters()])}
    for name, weight in model.state_dict(keep_vars=True).items():
        own = noise.get(tied.get(id(weight), name))
        noisy = weight.detach() if own is None else weight.detach().add(own, alpha=amount)
        yield name, noisy.to(torch.bfloat16)


if __name__ == "__main__":
    command_line(build_ladder)
