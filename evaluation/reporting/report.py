"""The report: a page of HTML for each stage and a front page, each one file without a network."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from evaluation.bridge.deltas import HEADLINES as DECISIVE
from evaluation.checkpoints.subjects import stage_steps
from evaluation.reporting.curves import Series, joined_series, stage_series
from evaluation.reporting.flips import stage_flips
from evaluation.reporting.stage import StageResults, read_stage
from evaluation.reporting.tables import HEADLINES, summary_rows
from evaluation.reporting.trust import trust_tables
from evaluation.reporting.values import OVERALL
from evaluation.settings.plan import StagePlan
from evaluation.store import write_text

ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=jinja2.select_autoescape(("html",)),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
)


def write_stage_report(plan: StagePlan, steps: Sequence[int], output: Path) -> None:
    """Writes a stage's page from whatever results are there, saying what is missing.

    Raises:
        BridgeError: a result is there but damaged.
    """
    found = read_stage(plan, steps)
    chosen = _chosen_step(found)
    shown = sorted({chosen, max(found.steps)}) if chosen is not None else []
    data = {
        "step": chosen,
        "series": stage_series(summary_rows(found)),
        "columns": DELTA_COLUMNS,
        "deltas": [row for content in found.deltas.values() for row in _deltas(content)],
        "flips": stage_flips(found, shown),
    }
    verdicts = [
        {"step": step, "verdict": content["verdict"], "aims": content["aims"]}
        for step, content in found.deltas.items()
    ]
    text = ENVIRONMENT.get_template("stage.html").render(
        title=plan.name,
        verdict=_stage_verdict(found),
        advice=_advice(found),
        no_advice=(found.recommendation or {}).get("why", "the bridge has not been compared yet"),
        has_bridge=plan.stage.bridge is not None,
        bridge=next((row["bridge"] for c in found.deltas.values() for row in c["deltas"]), None),
        missing=found.missing,
        aims=[_aim_title(aim) for aim in verdicts[0]["aims"]] if verdicts else [],
        verdicts=verdicts,
        trust=trust_tables(found),
        data=_embedded(data),
    )
    write_text(output, text)


def _embedded(data: Any) -> Markup:
    """JSON that may stand inside a script element, whatever text it holds."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(sign, code)
    return Markup(text)


def _chosen_step(found: StageResults) -> int | None:
    """The recommended step, or the last one."""
    recommended = (found.recommendation or {}).get("step")
    if recommended in found.steps:
        return int(recommended)
    return max(found.steps, default=None)


def _stage_verdict(found: StageResults) -> str | None:
    """Of the step that is recommended."""
    verdict = (found.recommendation or {}).get("verdict")
    return None if verdict is None else str(verdict)


def _advice(found: StageResults) -> dict[str, Any] | None:
    advice = found.recommendation
    if advice is None or advice["step"] is None:
        return None
    kind = "Recommended" if advice["meets"] else "Least bad"
    return {**advice, "kind": kind, "beside": [entry["step"] for entry in advice["beside"]]}


def _aim_title(aim: Mapping[str, Any]) -> str:
    group = f" ({aim['group']})" if aim["group"] else ""
    return f"{aim['tier']}{group}: {aim['want']}, margin {aim['margin']:g}"


DELTA_COLUMNS = (
    *("step", "tier", "item", "metric", "value", "bridge", "delta", "low", "high"),
    *("p_holm", "mde", "n", "want", "flag", "note", "headline", "name", "label"),
)
"""`headline` rows are in the forest plot, where `name` and `label` are written."""


def _deltas(content: Mapping[str, Any]) -> list[list[Any]]:
    """Rows of DELTA_COLUMNS; arrays and six digits, as there may be hundreds of steps."""
    rows = []
    for row in content["deltas"]:
        metric = row["metric"].removeprefix("delta_")
        by_rate = row["tier"] == "tier4" and row["item"] == OVERALL
        shown = {
            **row,
            "metric": metric,
            "bridge": row["bridge_value"],
            "headline": by_rate or row["metric"] == DECISIVE[row["tier"]],
            "name": metric if by_rate else row["item"],
            "label": "rates" if row["tier"] == "tier4" else metric,
        }
        rows.append([_rounded(shown[name]) for name in DELTA_COLUMNS])
    return rows


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def write_front_page(plans: Mapping[str, StagePlan], output: Path) -> None:
    """Writes the page that shows all stages in a row; what is not there yet is named."""
    found = {name: read_stage(plan, stage_steps(plan)) for name, plan in plans.items()}
    series = {name: stage_series(summary_rows(stage)) for name, stage in found.items()}
    sparks = {name: _spark(stage, series[name]) for name, stage in found.items()}
    text = ENVIRONMENT.get_template("front.html").render(
        title="Evaluation of the stages",
        stages=[_card(stage, sparks[name]) for name, stage in found.items()],
        data=_embedded({"sparks": sparks, "series": joined_series(series)}),
    )
    write_text(output, text)


def _spark(found: StageResults, series: Sequence[Series]) -> Series | None:
    """The headline's overall curve; without an objective that of the last tier there is."""
    objective = found.plan.stage.objective
    aim = next((aim for aim in objective if aim.want == "improve"), None)
    tiers = [aim.tier] if aim else list(reversed(found.plan.tiers))
    for tier in tiers:
        for one in series:
            if (one["tier"], one["item"], one["metric"]) == (tier, OVERALL, HEADLINES[tier]):
                return one
    return None


def _card(found: StageResults, spark: Series | None) -> dict[str, Any]:
    objective = [_aim_title(aim.model_dump()) for aim in found.plan.stage.objective]
    advice = _advice(found)
    missing = list(found.missing[:4])
    missing += [f"and {len(found.missing) - 4} more"] if len(found.missing) > 4 else []
    return {
        "name": found.plan.name,
        "verdict": _stage_verdict(found) or ("undecided" if objective else "no objective"),
        "objective": "; ".join(objective),
        "advice": f"{advice['kind']}: step {advice['step']}" if advice else "no recommendation",
        "headline": f"{spark['tier']} {spark['metric']}" if spark else "no results yet",
        "missing": "; ".join(missing),
    }
