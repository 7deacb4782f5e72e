"""Checks the demo's verdicts against the order of its checkpoints, which is known.

    python -m demo.order CONFIG

With less noise than its bridge a step must be significantly better on Tier2's mean, with more
significantly worse and meet no objective; no slice, task or rate may tell the opposite; and the step with
the least noise must be the recommended one, or the least bad.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from demo.ladder import LADDER
from evaluation.errors import EvaluationError
from evaluation.results.table import SUMMARY, TableRows, read_rows
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages

NOISE = {(rung.stage, rung.step): rung.noise for rung in LADDER}


def disagreements(plan: StagePlan) -> list[str]:
    """Return what a stage's results say against the known order; raise ResultsError where there are none."""
    bridge = plan.stage.bridge
    if bridge is None or bridge.stage is None or bridge.step is None:
        return []
    rows = [row for row in read_rows(plan.results / SUMMARY) if row["role"] == "step"]
    noise = {step: amount for (stage, step), amount in NOISE.items() if stage == plan.name}
    found = []
    for step, amount in noise.items():
        is_better = amount < NOISE[bridge.stage, bridge.step]
        own = [row for row in rows if row["step"] == step]
        found += [f"{plan.name} step {step}: {said}" for said in _against(own, is_better)]
    advice = json.loads((plan.results / "recommendation.json").read_text(encoding="utf-8"))
    if advice["step"] != (best := min(noise, key=lambda step: noise[step])):
        found.append(
            f"{plan.name}: {advice['step']} is named, not {best}, which has the least noise"
        )
    return found


def _against(rows: TableRows, is_better: bool) -> Iterator[str]:
    wanted, wrong = ("better", "worse") if is_better else ("worse", "better")
    for row in rows:
        name = row["tier"], row["item"], row["metric"]
        if name == ("tier2", "overall", "nats_per_token") and row["flag"] != wanted:
            yield f"Tier2's mean is {row['flag']}, not {wanted}"
        if row["primary"] and row["flag"] == wrong:
            yield f"{' '.join(name)} is {wrong}"
    if not is_better and {row["verdict"] for row in rows} != {"not met"}:
        yield f"a planted regression is {rows[0]['verdict']}"


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
