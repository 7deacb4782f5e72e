"""Stages drawn at random whose truth is known, decided by the code that decides real ones.

Questions of tasks are answered right where base + noise + skill > 0: what is common to a question,
what is a checkpoint's own (partly shared by the steps of a stage, which descend from each other), and
how good the checkpoint is. So a step's true gain of accuracy is Phi(skill / sd) - 1/2. Nats of blocks
differ by a step's true loss and noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from evaluation.bridge.decision import Decision, JudgedStep, decide
from evaluation.bridge.delta import Delta, delta_of
from evaluation.bridge.estimate import Estimate
from evaluation.bridge.paired_binary import paired_rate
from evaluation.bridge.recommendation import recommend
from evaluation.bridge.statistics import holm, ratio_of_blocks
from evaluation.settings.objectives import Objective
from evaluation.settings.tiers import TIERS

OWN = 0.5
"""Standard deviation of what is a checkpoint's own, beside 1 of what is a question's."""

IMPROVE = Objective.model_validate({"tier": "tier3", "want": "improve", "margin": 0.0})
KEEP = Objective.model_validate({"tier": "tier2", "want": "keep", "margin": 0.02})


@dataclass(frozen=True, kw_only=True)
class World:
    """A stage's truth: each step's gain of accuracy and loss in nats per token.

    `alike` is the share of a step's noise that all steps have in common.
    """

    gains: Sequence[float]
    losses: Sequence[float] = ()
    objective: Sequence[Objective] = (IMPROVE,)
    tasks: int = 4
    questions: int = 300
    slices: int = 2
    blocks: int = 150
    alike: float = 0.3


@dataclass
class Counts:
    """Over `stages` drawn: how often what was said was wrong or right, in shares of them.

    Of what would be said without any correction (`own_…`) as well.
    """

    stages: int
    met: float
    met_wrongly: float
    own_met: float
    covered: float
    own_covered: float
    excluded: float
    own_excluded: float


def simulate(world: World, stages: int, seed: int) -> Counts:
    """Draws a stage several times, decides it, and counts."""
    rng = np.random.default_rng(seed)
    found = [
        _said(world, decide("simulated", world.objective, draw_deltas(world, rng)))
        for _ in range(stages)
    ]
    return Counts(stages, **{name: np.mean([one[name] for one in found]) for name in found[0]})


def draw_deltas(world: World, rng: np.random.Generator) -> dict[int, list[Delta]]:
    steps = range(len(world.gains))
    deltas: dict[int, list[Delta]] = {step: [] for step in steps}
    skills = math.sqrt(1 + OWN**2) * special.ndtri(0.5 + np.asarray(world.gains))
    for task in range(world.tasks):
        base, common = rng.normal(0, 1, (2, world.questions))
        own = rng.normal(0, OWN, (len(world.gains) + 1, world.questions))
        own[:-1] = math.sqrt(world.alike) * OWN * common + math.sqrt(1 - world.alike) * own[:-1]
        theirs = (base + own[-1] > 0).astype(np.float64)
        for step in steps:
            ours = (base + own[step] + skills[step] > 0).astype(np.float64)
            estimate = paired_rate(ours, theirs)
            deltas[step].append(_delta("tier3", f"task {task}", "acc", ours.mean(), estimate))
    for part in range(world.slices if world.losses else 0):
        nats, bridge = rng.normal(3, 0.3, (2, world.blocks))
        tokens = np.full(world.blocks, 64.0)
        common = rng.normal(0, 0.06, world.blocks)
        for step in steps:
            noise = common + rng.normal(0, 0.06, world.blocks)
            theirs = (nats + 0.1 * bridge) * tokens
            ours = theirs + (world.losses[step] + noise) * tokens
            estimate = ratio_of_blocks(ours - theirs, tokens)
            deltas[step].append(_delta("tier2", f"slice {part}", "nats_per_token", 3.0, estimate))
    return deltas


def _delta(tier: str, item: str, metric: str, value: float, estimate: Estimate) -> Delta:
    values = float(value), float(value) - estimate.value
    return delta_of(TIERS[tier], item, None, metric, values, estimate)


def _said(world: World, decision: Decision) -> dict[str, bool]:
    """Of one stage, as recommendation.json says it: by the names of `Counts`."""
    labels = {one.step: "" for one in decision.steps}
    content = recommend("simulated", world.objective, decision, labels)
    chosen, head = content["step"], content["headline"]
    tier2 = all(objective.tier == "tier2" for objective in world.objective)
    truths = world.losses if tier2 else world.gains
    own_met = [step for step in decision.steps if step.own_verdict == "met"]
    own_pool = own_met or [step for step in decision.steps if not step.breaks_a_keep]
    own = decision.decisive[chosen].estimate  # whose 95 % interval knows of no choice
    best = [step for step, value in enumerate(truths) if value == max(truths)]
    behind = [e["step"] for e in content["others"] if "significantly behind" in e["why"]]
    return {
        "met": content["meets"],
        "met_wrongly": content["meets"] and not meets(world, chosen),
        "own_met": bool(own_met),
        "covered": head["low"] <= truths[chosen] <= head["high"],
        "own_covered": own.low <= truths[chosen] <= own.high,
        "excluded": any(step in best for step in behind),
        "own_excluded": any(step in best for step in _behind_by_holm(decision, own_pool)),
    }


def meets(world: World, step: int) -> bool:
    """Whether a step truly meets the objective."""
    gains = {"tier3": world.gains[step], "tier2": -world.losses[step] if world.losses else 0.0}
    return all(
        gains[one.tier] > (one.margin if one.want == "improve" else -one.margin)
        for one in world.objective
    )


def _behind_by_holm(decision: Decision, pool: Sequence[JudgedStep]) -> list[int]:
    """Steps that Holm's correction puts behind the best, as if the data had not chosen that one."""
    ranking, headline = decision.ranking(), decision.headline
    if ranking is None:
        return []
    best = max(pool, key=lambda step: step.objectives[headline].gain).step
    p_values = {}
    for one in pool:
        gap = one.objectives[headline].gain - decision.steps[best].objectives[headline].gain
        if one.step != best and gap <= 0:
            pair = ranking.pairs[min(one.step, best), max(one.step, best)]
            p_values[str(one.step)] = pair.p
    return [int(name) for name, p in holm(p_values).items() if p is not None and p < 0.05]
