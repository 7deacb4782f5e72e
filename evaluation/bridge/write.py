"""Writes the files of the bridge, each step's and a stage's; see `results.bridge_files`."""

import csv
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation import protocol
from evaluation.bridge.averages import average_aim
from evaluation.bridge.decision import Decision, decide, lean
from evaluation.bridge.deltas import compare
from evaluation.bridge.groups import group_deltas
from evaluation.bridge.moves import pass_rate_moves
from evaluation.bridge.pairing import check_comparable
from evaluation.bridge.recommendation import recommend
from evaluation.bridge.rows import delta_row
from evaluation.bridge.statistics import ALPHA, CONFIDENCE, POWER
from evaluation.bridge.verdicts import conjunction, judge_step
from evaluation.command_hints import evaluation
from evaluation.errors import BridgeError, ResultsError
from evaluation.escaping import csv_cell
from evaluation.files import atomic_path
from evaluation.results.averaging import mean_results
from evaluation.results.bridge_files import (
    DELTAS,
    RECOMMENDATION,
    STAGE_TABLE,
    Recommendation,
    StageDeltas,
    StepDeltas,
    read_step_deltas,
    warnings_in_words,
)
from evaluation.results.bridge_rows import DELTA_COLUMNS
from evaluation.results.columns import Column
from evaluation.results.files import write_model
from evaluation.results.read import Results, read_results
from evaluation.settings.plan import StagePlan

log = logging.getLogger(__name__)


def bridge_label(bridge: Results) -> str:
    """How tables name a bridge: the last two folders of its path, e.g. `stage1/50000`."""
    return "/".join(Path(bridge.header.checkpoint).parts[-2:])


def write_deltas(plan: StagePlan, step: int) -> Path:
    """Compares a step with the bridge and writes `bridge_deltas.json` into its folder.

    Raises:
        ResultsError: results are missing or damaged.
        BridgeError: the two must not be compared.
    """
    ours = read_results(plan.step_folder(step), plan.tiers)
    bridge = read_results(plan.bridge_folder, plan.tiers)
    deltas = compare(ours, bridge)
    aims = judge_step(plan.stage.objective, deltas, plan.name)
    content = {
        "stage": plan.name,
        "step": step,
        "protocol": protocol.BRIDGE,
        "confidence": CONFIDENCE,
        "alpha": round(ALPHA, 10),
        "power": POWER,
        "checkpoint": _origin(ours),
        "bridge": _origin(bridge),
        "notes": check_comparable(ours, bridge),
        "verdict": conjunction([aim.verdict for aim in aims]),
        "aims": [asdict(aim) for aim in aims],
        "deltas": [delta_row(delta, plan.name, step, bridge_label(bridge)) for delta in deltas],
        "groups": group_deltas(ours, bridge),
        "moves": list(pass_rate_moves(ours, bridge)),
    }
    path = plan.step_folder(step) / DELTAS
    write_model(path, StepDeltas, content)
    return path


def _origin(side: Results) -> dict[str, Any]:
    header, files = side.header, [tier.file for tier in side.tiers.values()]
    return {
        "path": header.checkpoint,
        "identity": header.checkpoint_identity,
        "step": header.step,
        "protocols": {name: tier.file.protocol for name, tier in side.tiers.items()},
        "tokenizer": header.tokenizer.identity,
        "sequence_length": header.sequence_length,
        "gpu": " and ".join(dict.fromkeys(file.gpu for file in files if file.gpu)) or None,
        "row_tokens": sorted({tokens for file in files for tokens in file.row_tokens}),
    }


def write_stage(plan: StagePlan, steps: Sequence[int], awaited: Sequence[int] = ()) -> None:
    """Writes a stage's deltas in long form and its recommendation, from its steps' files.

    Steps whose file is missing or damaged are logged and named in both. As long as steps are awaited
    or left out, the recommendation is provisional.
    """
    contents, left_out = _read_steps(plan, steps)
    to_come = sorted({*awaited, *steps} - contents.keys())
    outlook = {"left_out": left_out, "provisional": bool(to_come), "awaited": to_come}
    rows = [row.model_dump() for content in contents.values() for row in content.deltas]
    stage = {
        "stage": plan.name,
        "protocol": protocol.BRIDGE,
        **outlook,
        "notes": warnings_in_words(contents),
        "verdicts": [
            {
                "step": step,
                "verdict": content.verdict,
                "aims": [a.model_dump() for a in content.aims],
            }
            for step, content in contents.items()
        ],
        "deltas": rows,
    }
    advice = _advice(plan, contents, len(to_come))
    write_csv(plan.results / STAGE_TABLE, DELTA_COLUMNS, rows)
    write_model(plan.results / DELTAS, StageDeltas, stage)
    write_model(plan.results / RECOMMENDATION, Recommendation, {**advice, **outlook})


def _advice(plan: StagePlan, contents: Mapping[int, StepDeltas], awaited: int) -> dict[str, Any]:
    """What `recommendation.json` holds; no step where the results behind one cannot be read."""
    paths = {step: content.checkpoint.path for step, content in contents.items()}
    try:
        decision = _decision(plan, list(contents), awaited)
        is_open = plan.stage.open_ended
        advice = recommend(plan.name, plan.stage.objective, decision, paths, is_open=is_open)
        return {**advice, "averages": list(_averages(plan, sorted(contents)))}
    except (ResultsError, BridgeError) as error:
        log.warning("no recommendation for %s: %s", plan.name, error)
        nothing: dict[str, Any] = {"step": None, "meets": None, "beside": [], "others": []}
        return {"stage": plan.name, "why": f"steps cannot be compared: {error}", **nothing}


def _decision(plan: StagePlan, steps: Sequence[int], awaited: int) -> Decision | None:
    """All steps judged together, from their results; None where there is nothing to decide."""
    objective = plan.stage.objective
    if not objective or not steps:
        return None
    bridge = read_results(plan.bridge_folder, plan.tiers)
    deltas = {
        step: lean(compare(read_results(plan.step_folder(step), plan.tiers), bridge), objective)
        for step in steps
    }
    return decide(plan.name, objective, deltas, awaited)


def _averages(plan: StagePlan, steps: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Each aim that asks for it by the mean over the last checkpoints, where there are as many."""
    for number, aim in enumerate(plan.stage.objective):
        last = steps[-aim.average :] if aim.average is not None else ()
        if aim.average is None or len(last) < aim.average:
            continue
        bridge = read_results(plan.bridge_folder, (aim.tier,))
        sides = {step: read_results(plan.step_folder(step), (aim.tier,)) for step in last}
        deltas = {step: compare(side, bridge) for step, side in sides.items()}
        mean = compare(mean_results(list(sides.values())), bridge)
        key = f"stages.{plan.name}.objective.{number}"
        yield asdict(average_aim(aim, key, mean, deltas))


def _read_steps(plan: StagePlan, steps: Sequence[int]) -> tuple[dict[int, StepDeltas], list[str]]:
    """The steps' files, and a sentence for each that cannot be used."""
    contents, left_out = {}, []
    for step in steps:
        try:
            contents[step] = _read_step(plan, step)
        except ResultsError as error:
            log.warning("step %d is left out: %s", step, error)
            left_out.append(f"step {step}: {error}")
    return contents, left_out


def _read_step(plan: StagePlan, step: int) -> StepDeltas:
    path, aims = plan.step_folder(step) / DELTAS, len(plan.stage.objective)
    again = evaluation(f"deltas --stage {plan.name} --step {step}")
    content = read_step_deltas(path)
    if len(content.aims) != aims:
        raise ResultsError(
            f"{path}: it judges {len(content.aims)} aims, but the stage's objective has {aims}; run "
            f"`{again}`"
        )
    return content


def write_csv(path: Path, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows under a header line; None is an empty cell."""
    names = [column.name for column in columns]
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows({key: csv_cell(row.get(key)) for key in names} for row in rows)
