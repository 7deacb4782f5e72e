# Cheap and local: every step's deltas against the bridge, from stored per-item scores.
for _plan in PLANS.values():
    if _plan.stage.bridge is None:
        continue

    rule:
        name:
            f"deltas_{_plan.name}"
        input:
            tier_files(_plan, f"{_plan.results}/by_checkpoint/step_{{step}}"),
            tier_files(_plan, _plan.bridge_folder),
        output:
            f"{_plan.results}/by_checkpoint/step_{{step}}/bridge_deltas.json",
        log:
            f"{_plan.results}/eval_logs/deltas_{{step}}.log",
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        params:
            stage=_plan.name,
            objective=fingerprint([aim.model_dump() for aim in _plan.stage.objective]),
            protocol=protocol.BRIDGE,
        shell:
            "evaluation deltas --stage {params.stage} --step {wildcards.step} 2>&1 | logged {log:q}"
