"""Which checkpoint of a stage to take on.

The headline is the stage's first aim to improve (its first aim if it has none). Of the steps that
meet the whole objective, the one with the best headline is recommended. If none meets it, the
least bad one is named as such: the best headline among the steps that break no aim to
keep something, or else the step that loses least beyond its margins. Steps that a paired test at
0.05 (Holm's correction over them) cannot tell from the chosen one stand beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.bridge.deltas import compare
from evaluation.bridge.statistics import ALPHA, Estimate, holm
from evaluation.bridge.verdicts import AimVerdict, Answer, aimed_at
from evaluation.results.read import Results
from evaluation.settings.config import Aim
from evaluation.settings.tiers import TierName


@dataclass(frozen=True, kw_only=True)
class JudgedStep:
    """A step with its verdicts, one for each aim of the objective, in order."""

    step: int
    verdict: Answer
    aims: Sequence[AimVerdict]

    def breaks_a_keep(self) -> bool:
        return any(aim.want == "keep" and aim.verdict == "not met" for aim in self.aims)

    def excess_loss(self) -> float:
        """Largest loss beyond its margin among the aims to keep."""
        keeps = [aim for aim in self.aims if aim.want == "keep"]
        return max((-aim.gain - aim.margin for aim in keeps), default=0.0)


def headline_aim(objective: Sequence[Aim]) -> int:
    """Index of the aim that steps are ranked by."""
    return next((i for i, aim in enumerate(objective) if aim.want == "improve"), 0)


def choose(steps: Sequence[JudgedStep], headline: int) -> tuple[JudgedStep, list[JudgedStep]]:
    """The step to name, and all it was chosen from."""
    met = [step for step in steps if step.verdict == "met"]
    harmless = [step for step in steps if not step.breaks_a_keep()]
    pool = met or harmless
    if pool:
        return max(pool, key=lambda step: (step.aims[headline].gain, step.step)), pool
    return min(steps, key=lambda step: (step.excess_loss(), -step.step)), list(steps)


def recommend(
    stage: str,
    objective: Sequence[Aim],
    steps: Sequence[JudgedStep],
    read: Callable[[int, TierName], Results],
) -> dict[str, Any]:
    """What `recommendation.json` holds; `read` gives the results of a step for a tier."""
    if not objective or not steps:
        why = "the stage has no objective" if steps else "no step has been compared with the bridge"
        return {"stage": stage, "step": None, "meets": None, "why": why, "beside": [], "others": []}
    headline = headline_aim(objective)
    best, pool = choose(steps, headline)
    aimed, aim = objective[headline], best.aims[headline]
    theirs = read(best.step, aimed.tier)
    tests = {
        step.step: _against(aimed, read(step.step, aimed.tier), theirs, stage)
        for step in pool
        if step is not best
    }
    beside = _not_told_apart(tests)
    names = {best.step, *(entry["step"] for entry in beside)}
    return {
        "stage": stage,
        "step": best.step,
        "checkpoint": theirs.header.checkpoint,
        "meets": best.verdict == "met",
        "verdict": best.verdict,
        "why": _why(best, headline),
        "headline": {
            "tier": aim.tier,
            "group": aim.group,
            "metric": aim.metric.removeprefix("delta_"),
            "value": aim.value,
            "bridge_value": aim.bridge_value,
        },
        "beside": beside,
        "others": [
            {
                "step": step.step,
                "verdict": step.verdict,
                "why": _fell_out(step, best, pool, headline),
            }
            for step in steps
            if step.step not in names
        ],
    }


def _against(aim: Aim, ours: Results, theirs: Results, stage: str) -> Estimate:
    """A step against the chosen one on the headline alone."""
    _, delta = aimed_at(aim, compare(ours, theirs), f"stages.{stage}.objective")
    return delta.estimate


def _not_told_apart(tests: Mapping[int, Estimate]) -> list[dict[str, Any]]:
    """The steps whose Holm-corrected test against the chosen one finds no difference."""
    adjusted = holm({str(step): test.p for step, test in tests.items()})
    return [
        {"step": step, "delta": test.value, "low": test.low, "high": test.high, "p": test.p}
        for step, test in tests.items()
        if (p := adjusted[str(step)]) is None or p >= ALPHA
    ]


def _headline(step: JudgedStep, headline: int) -> str:
    aim = step.aims[headline]
    return f"{aim.metric.removeprefix('delta_')} {aim.value:.4f} (bridge {aim.bridge_value:.4f})"


def _why(best: JudgedStep, headline: int) -> str:
    text = _headline(best, headline)
    if best.verdict == "met":
        return f"meets the objective, with the best {text}"
    failing = "; ".join(
        f"{a.label}: {a.verdict} ({a.why})" for a in best.aims if a.verdict != "met"
    )
    return f"no step meets the objective; this is the least bad one, with {text}: {failing}"


def _fell_out(step: JudgedStep, best: JudgedStep, pool: Sequence[JudgedStep], headline: int) -> str:
    if step in pool:
        return f"its {_headline(step, headline)} is significantly behind step {best.step}"
    failing = [aim for aim in step.aims if aim.verdict != "met"]
    return "; ".join(f"{aim.label}: {aim.verdict} ({aim.why})" for aim in failing)
