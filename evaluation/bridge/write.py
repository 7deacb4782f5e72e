"""Write deltas, verdicts and recommendations (`results.deltas_file`, `results.stage_files`)."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.breakdowns import Breakdowns
from evaluation.bridge.comparable import check_comparable
from evaluation.bridge.decision import JudgedStep, decide
from evaluation.bridge.delta import OVERALL, Delta, leading_deltas
from evaluation.bridge.deltas import compare
from evaluation.bridge.estimate import ALPHA, CONFIDENCE, POWER
from evaluation.bridge.recommendation import no_step, recommend
from evaluation.bridge.verdicts import conjunction, objective_verdicts
from evaluation.errors import BridgeError, ResultsError
from evaluation.results.columns import write_csv
from evaluation.results.delta_notes import warnings_in_words
from evaluation.results.delta_rows import DELTA_COLUMNS
from evaluation.results.deltas_file import DELTAS, STAGE_TABLE, StageDeltas, StepDeltas
from evaluation.results.files import write_model
from evaluation.results.read import Results, read_results
from evaluation.results.stage_files import RECOMMENDATION, Recommendation
from evaluation.settings import protocol
from evaluation.settings.objectives import Objective
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

log = logging.getLogger(__name__)


def write_deltas(plan: StagePlan, step: int) -> Path:
    """Compare a step with the bridge and write `bridge_deltas.json` into its folder.

    Raises:
        ResultsError: Results are missing or damaged.
        BridgeError: The two must not be compared.
    """
    ours = read_results(plan.step_folder(step), plan.tiers)
    bridge = read_results(plan.bridge_folder, plan.tiers)
    deltas = compare(ours, bridge)
    verdicts = objective_verdicts(plan.stage.objective, deltas, plan.name)
    breakdowns = Breakdowns(ours, bridge)
    about = {"stage": plan.name, "step": step}
    content = {
        **about,
        "protocol": protocol.BRIDGE,
        "confidence": CONFIDENCE,
        "alpha": round(ALPHA, 10),
        "power": POWER,
        "checkpoint": _origin(ours),
        "bridge": _origin(bridge),
        "notes": check_comparable(ours, bridge),
        "verdict": conjunction([verdict.verdict for verdict in verdicts]),
        "objectives": [verdict.model_dump() for verdict in verdicts],
        "deltas": [{**about, "bridge": bridge.label, **delta.columns} for delta in deltas],
        "groups": breakdowns.by_group,
        "by_position": breakdowns.by_position,
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


def write_stage(
    plan: StagePlan,
    steps: Sequence[int],
    awaited: Sequence[int] = (),
    failed: Sequence[str] = (),
) -> None:
    """Write a stage's deltas in long form and its recommendation, from the steps' files.

    Steps whose file is missing or damaged are logged and named in both. As long as steps are
    awaited or left out, the recommendation is provisional.

    Args:
        steps: Steps that were compared with the bridge, in the order of rows.
        awaited: Steps that are expected; those without a usable file are still to come.
        failed: Sentences on steps that could not be compared.
    """
    contents, left_out = _read_steps(plan, steps)
    left_out = [*failed, *left_out]
    to_come = sorted({*awaited, *steps} - contents.keys())
    outlook = {"left_out": left_out, "provisional": bool(to_come), "awaited": to_come}
    rows = [row.model_dump() for content in contents.values() for row in content.deltas]
    advice, judged = _advice(plan, contents, len(to_come))
    stage = {
        "stage": plan.name,
        "protocol": protocol.BRIDGE,
        **outlook,
        "notes": warnings_in_words(contents),
        "verdicts": [
            _stage_verdict(step, content, judged.get(step)) for step, content in contents.items()
        ],
        "deltas": rows,
    }
    write_csv(plan.results / STAGE_TABLE, DELTA_COLUMNS, rows)
    write_model(plan.results / DELTAS, StageDeltas, stage)
    write_model(plan.results / RECOMMENDATION, Recommendation, {**advice, **outlook})


def _stage_verdict(step: int, content: StepDeltas, judged: JudgedStep | None) -> dict[str, Any]:
    """Return a step's verdict corrected for the choice among all steps, as they were judged together."""
    corrected = content if judged is None else judged
    return {
        "step": step,
        "verdict": corrected.verdict,
        "own_verdict": content.verdict,
        "objectives": [row.model_dump() for row in corrected.objectives],
    }


def _advice(
    plan: StagePlan, contents: Mapping[int, StepDeltas], awaited: int
) -> tuple[dict[str, Any], dict[int, JudgedStep]]:
    """Return the content of `recommendation.json`, without steps that cannot be read; all verdicts."""
    paths = {step: content.checkpoint.path for step, content in contents.items()}
    objectives, decision = plan.stage.objective, None
    deltas: dict[int, list[Delta]] = {}
    try:
        if objectives and contents:
            bridge = read_results(plan.bridge_folder, plan.tiers)
            deltas = {step: _needed(plan, step, bridge) for step in contents}
            decision = decide(plan.name, objectives, deltas, awaited)
        advice = recommend(plan.name, objectives, decision, paths, is_open=plan.stage.open_ended)
        judged = {} if decision is None else {step.step: step for step in decision.steps}
        return advice, judged
    except (ResultsError, BridgeError) as error:
        log.warning("no recommendation for %s: %s", plan.name, error)
        return no_step(plan.name, f"steps cannot be compared: {error}"), {}


def _needed(plan: StagePlan, step: int, bridge: Results) -> list[Delta]:
    """Return the deltas that a step is judged by."""
    ours = read_results(plan.step_folder(step), plan.tiers)
    return _needed_deltas(compare(ours, bridge), plan.stage.objective)


def _needed_deltas(deltas: Sequence[Delta], objectives: Sequence[Objective]) -> list[Delta]:
    """Return the deltas that a stage is judged by; all of them would take much memory."""
    named = {f"delta_{objective.metric}" for objective in objectives}
    return [
        delta
        for delta in deltas
        if delta.item != OVERALL or TIERS[delta.tier].rates
        if delta.primary or delta.metric in {*leading_deltas(delta.tier), *named}
    ]


def _read_steps(plan: StagePlan, steps: Sequence[int]) -> tuple[dict[int, StepDeltas], list[str]]:
    """Return the steps' files, and a sentence for each that cannot be used."""
    contents, left_out = {}, []
    for step in steps:
        try:
            contents[step] = _read_step(plan, step)
        except ResultsError as error:
            log.warning("%s is left out: %s", plan.label(step), error)
            left_out.append(f"{plan.label(step)}: {error}")
    return contents, left_out


def _read_step(plan: StagePlan, step: int) -> StepDeltas:
    path, objectives = plan.step_folder(step) / DELTAS, len(plan.stage.objective)
    again = f"python -m evaluation deltas --stage {plan.name} --step {step}"
    content = StepDeltas.read(path)
    if len(content.objectives) != objectives:
        raise ResultsError(
            f"{path}: it judges {len(content.objectives)} objectives, but the stage has {objectives}; run "
            f"`{again}`"
        )
    return content
