"""Files of the bridge: each step's deltas and verdict, and a stage's.

<step>/bridge_deltas.json     deltas in long form, one verdict for each aim, the step's verdict
<stage>/bridge_deltas.csv     the deltas of all steps
<stage>/bridge_deltas.json    the same with all verdicts
<stage>/recommendation.json   which checkpoint to take on
"""

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation import protocol
from evaluation.bridge.decision import Decision, decide, lean
from evaluation.bridge.deltas import compare
from evaluation.bridge.recommendation import recommend
from evaluation.bridge.results import Results, read_results
from evaluation.bridge.rows import COLUMNS, delta_row
from evaluation.bridge.statistics import ALPHA, CONFIDENCE, POWER
from evaluation.bridge.verdicts import conjunction, judge_step
from evaluation.errors import BridgeError
from evaluation.files import atomic_path, write_json
from evaluation.settings.plan import StagePlan

DELTAS = "bridge_deltas.json"
STAGE_TABLE = "bridge_deltas.csv"
RECOMMENDATION = "recommendation.json"


def bridge_label(bridge: Results) -> str:
    """How tables name a bridge: the last two folders of its path, e.g. `stage1/50000`."""
    return "/".join(Path(bridge.header.checkpoint).parts[-2:])


def write_deltas(plan: StagePlan, step: int) -> Path:
    """Compares a step with the bridge and writes `bridge_deltas.json` into its folder.

    Raises:
        BridgeError: results are missing or damaged, or the two must not be compared.
    """
    ours = read_results(plan.step_folder(step), plan.tiers)
    bridge = read_results(plan.bridge_folder, plan.tiers)
    deltas = compare(ours, bridge)
    aims = judge_step(plan.stage.objective, deltas, plan.name)
    rows = [delta_row(delta, plan.name, step, bridge_label(bridge)) for delta in deltas]
    content = {
        "stage": plan.name,
        "step": step,
        "protocol": protocol.BRIDGE,
        "confidence": CONFIDENCE,
        "alpha": round(ALPHA, 10),
        "power": POWER,
        "checkpoint": _origin(ours),
        "bridge": _origin(bridge),
        "verdict": conjunction([aim.verdict for aim in aims]),
        "aims": [asdict(aim) for aim in aims],
        "deltas": rows,
    }
    path = plan.step_folder(step) / DELTAS
    write_json(path, content)
    return path


def _origin(side: Results) -> dict[str, Any]:
    header = side.header
    return {
        "path": header.checkpoint,
        "identity": header.identity,
        "step": header.step,
        "protocols": {tier: own.protocol for tier, own in side.headers.items()},
        "tokenizer": header.tokenizer,
        "sequence_length": header.sequence_length,
    }


def read_json(path: Path) -> dict[str, Any]:
    """A file of the bridge; raises BridgeError where it is missing or damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BridgeError(f"{path}: no such file; run `python -m evaluation deltas`") from None
    except ValueError as error:
        raise BridgeError(f"{path}: not JSON ({error}); remove it and run again") from None
    if not isinstance(content, dict):
        raise BridgeError(f"{path}: not a JSON object; remove it and run again")
    return content


def read_deltas(path: Path) -> dict[str, Any]:
    """A step's `bridge_deltas.json`; raises BridgeError where it is of another version."""
    content = read_json(path)
    found = content.get("protocol")
    if found != protocol.BRIDGE:
        raise BridgeError(
            f"{path}: written by bridge protocol {found!r}, not {protocol.BRIDGE!r}; remove it and "
            "run again"
        )
    return content


def write_stage(plan: StagePlan, steps: Sequence[int]) -> None:
    """Writes a stage's deltas in long form and its recommendation, from its steps' files."""
    contents = {step: read_deltas(plan.step_folder(step) / DELTAS) for step in steps}
    rows = [row for content in contents.values() for row in content["deltas"]]
    verdicts = [
        {key: content[key] for key in ("step", "verdict", "aims")} for content in contents.values()
    ]
    paths = {step: content["checkpoint"]["path"] for step, content in contents.items()}
    write_csv(plan.results / STAGE_TABLE, COLUMNS, rows)
    write_json(
        plan.results / DELTAS,
        {"stage": plan.name, "protocol": protocol.BRIDGE, "verdicts": verdicts, "deltas": rows},
    )
    write_json(
        plan.results / RECOMMENDATION,
        recommend(plan.name, plan.stage.objective, _decision(plan, steps), paths),
    )


def _decision(plan: StagePlan, steps: Sequence[int]) -> Decision | None:
    """All steps judged together, from their results; None where there is nothing to decide."""
    if not plan.stage.objective or not steps:
        return None
    bridge = read_results(plan.bridge_folder, plan.tiers)
    deltas = {
        step: lean(compare(read_results(plan.step_folder(step), plan.tiers), bridge))
        for step in steps
    }
    return decide(plan.name, plan.stage.objective, deltas)


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Writes rows under a header line; None is an empty cell."""
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
