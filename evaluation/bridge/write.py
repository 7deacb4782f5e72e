"""Write deltas, verdicts and recommendations (`results.deltas_file`, `results.stage_files`)."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evaluation.bridge.breakdowns import Breakdowns
from evaluation.bridge.comparable import check_comparable
from evaluation.bridge.decision import JudgedStep, decide
from evaluation.bridge.delta import Delta
from evaluation.bridge.deltas import compare
from evaluation.bridge.estimate import ALPHA, CONFIDENCE, POWER
from evaluation.bridge.recommendation import no_step, recommend
from evaluation.bridge.verdicts import conjunction, objective_verdicts
from evaluation.errors import BridgeError
from evaluation.results.deltas_file import DELTAS, StepDeltas
from evaluation.results.files import write_model
from evaluation.results.read import Results, read_results
from evaluation.results.stage_files import RECOMMENDATION, Recommendation
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan

log = logging.getLogger(__name__)


class ComparedStep(NamedTuple):
    """A step's file, and the deltas that it is judged by; all of them would take much memory."""

    content: StepDeltas
    decisive: list[Delta]


def write_deltas(plan: StagePlan, step: int) -> ComparedStep:
    """Compare a step with the bridge and write `bridge_deltas.json` into its folder."""
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
    named = {(goal.tier, f"delta_{goal.decided_on.name}") for goal in plan.stage.objective}
    return ComparedStep(
        write_model(plan.step_folder(step) / DELTAS, StepDeltas, content),
        [delta for delta in deltas if delta.primary or (delta.tier, delta.metric) in named],
    )


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
    compared: Mapping[int, ComparedStep],
    awaited: Sequence[int] = (),
    failed: Sequence[str] = (),
) -> Recommendation:
    """Write a stage's recommendation, with the verdicts on all steps; provisional as long as some lack.

    Args:
        compared: Steps that were compared with the bridge, in the order of rows.
        awaited: Steps that are expected; those that were not compared are still to come.
        failed: Sentences on steps that could not be compared.
    """
    to_come = sorted({*awaited} - compared.keys())
    advice, judged = _advice(plan, compared, len(to_come))
    verdicts = [
        {
            "step": step,
            "verdict": judged.get(step, content).verdict,
            "own_verdict": content.verdict,
            "objectives": [row.model_dump() for row in judged.get(step, content).objectives],
        }
        for step, (content, _) in compared.items()
    ]
    outlook = {"left_out": [*failed], "provisional": bool(to_come), "awaited": to_come}
    content = {**advice, **outlook, "verdicts": verdicts}
    return write_model(plan.results / RECOMMENDATION, Recommendation, content)


def _advice(
    plan: StagePlan, compared: Mapping[int, ComparedStep], awaited: int
) -> tuple[dict[str, Any], dict[int, JudgedStep]]:
    """Return the content of `recommendation.json`, and steps as they are judged together."""
    objectives, decision = plan.stage.objective, None
    try:
        if objectives and compared:
            deltas = {step: decisive for step, (_, decisive) in compared.items()}
            decision = decide(plan.name, objectives, deltas, awaited)
        paths = {step: content.checkpoint.path for step, (content, _) in compared.items()}
        advice = recommend(plan.name, objectives, decision, paths)
        return advice, {} if decision is None else {step.step: step for step in decision.steps}
    except BridgeError as error:
        log.warning("no recommendation for %s: %s", plan.name, error)
        return no_step(plan.name, f"steps cannot be compared: {error}"), {}
