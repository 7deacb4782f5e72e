"""A step's deltas as a step of the workflow: made, or recorded why they cannot be."""

from evaluation.bridge.write import write_deltas
from evaluation.command_hints import snakemake
from evaluation.dependencies.steps import COLLECT, STEP_DELTAS, deltas_key
from evaluation.errors import BridgeError, EvaluationError
from evaluation.records import Record, read_record, write_record
from evaluation.results.bridge_files import DELTAS
from evaluation.settings.plan import StagePlan


def make_deltas(plan: StagePlan, step: int) -> Record:
    """Writes a step's `bridge_deltas.json` from the tier files of it and of the bridge.

    Where one of them could not be scored, or the two must not be compared, the record says so.

    Raises:
        BridgeError: one of the two has no tier files yet.
    """
    folder = plan.step_folder(step)
    ours, bridge = (read_record(one, COLLECT) for one in (folder, plan.bridge_folder))
    if ours is None or bridge is None:
        lacking = folder if ours is None else plan.bridge_folder
        raise BridgeError(f"{lacking}: no results yet; run `{snakemake(plan.name)}`")
    key, path = deltas_key(plan, step, ours, bridge), folder / DELTAS
    error = ours.error or (bridge.error and f"the bridge has no results: {bridge.error}")
    if error is None:
        try:
            write_deltas(plan, step)
        except EvaluationError as wrong:
            error = str(wrong)
    if error is not None:
        path.unlink(missing_ok=True)
        return write_record(folder, STEP_DELTAS, key, error=error)
    return write_record(folder, STEP_DELTAS, key, [path])
