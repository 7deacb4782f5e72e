"""Checks the demo's verdicts against the order of its checkpoints, which is known.

    python -m demo.order CONFIG

With less noise than its bridge a step must be significantly better on Tier2's mean, with more
significantly worse and meet no objective; no slice, task or rate may tell the opposite; and the step with
the least noise must be the recommended one, or the least bad.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from demo.ladder import LADDER
from evaluation.bridge.delta import OVERALL, headline_delta
from evaluation.errors import EvaluationError
from evaluation.results.delta_rows import DeltaRow
from evaluation.results.deltas_file import DELTAS, StageDeltas
from evaluation.results.stage_files import RECOMMENDATION, Recommendation
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages

NOISE = {(rung.stage, rung.step): rung.noise for rung in LADDER}


def disagreements(plan: StagePlan) -> list[str]:
    """What a stage's results say against the known order; empty if nothing does.

    Raises:
        ResultsError: the stage has not been compared with its bridge yet.
    """
    bridge = plan.stage.bridge
    if bridge is None or bridge.stage is None or bridge.step is None:
        return []
    content = StageDeltas.read(plan.results / DELTAS)
    noise = {step: amount for (stage, step), amount in NOISE.items() if stage == plan.name}
    found = []
    for entry in content.verdicts:
        name = f"{plan.name} step {entry.step}"
        is_better = noise[entry.step] < NOISE[bridge.stage, bridge.step]
        own = [delta for delta in content.deltas if delta.step == entry.step]
        found += [f"{name}: {said}" for said in _against(own, is_better)]
        if not is_better and entry.verdict != "not met":
            found.append(f"{name}: a planted regression is {entry.verdict}")
    best = min(noise, key=lambda step: noise[step])
    advice = Recommendation.read(plan.results / RECOMMENDATION)
    advised = advice.step
    if advised != best:
        named = "nothing" if advised is None else f"step {advised}"
        found.append(f"{plan.name}: {named} is named, not step {best}, which has the least noise")
    return found


def _against(deltas: list[DeltaRow], is_better: bool) -> Iterator[str]:
    wanted, wrong = ("better", "worse") if is_better else ("worse", "better")
    for delta in deltas:
        is_mean = (delta.item, delta.metric) == (OVERALL, headline_delta("tier2"))
        if is_mean and delta.flag != wanted:
            yield f"Tier2's mean is {delta.flag}, not {wanted}"
        if delta.primary and delta.flag == wrong:
            yield f"{delta.tier} {delta.item} {delta.metric} is {wrong}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("config", type=Path)
    plans = plan_stages(load_config(parser.parse_args().config))
    try:
        found = [said for plan in plans.values() for said in disagreements(plan)]
    except EvaluationError as error:
        found = [str(error)]
    if found:
        print("The results do not agree with the known order:", *found, sep="\n", file=sys.stderr)
        return 1
    print("Every verdict and recommendation agrees with the known order of the checkpoints.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
