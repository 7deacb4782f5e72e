# Cheap and local: every step's deltas against the bridge, from stored per-item scores.
for _plan in PLANS.values():
    if _plan.stage.bridge is None:
        continue

    rule:
        name:
            f"deltas_{_plan.name}"
        input:
            lambda w, plan=_plan: INPUTS.deltas(plan, w.step),
        output:
            made(f"{_plan.results}/by_checkpoint/step_{{step}}", "deltas"),
        log:
            f"{_plan.results}/eval_logs/deltas_{{step}}.log",
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        params:
            stage=_plan.name,
        shell:
            "evaluation deltas --stage {params.stage} --step {wildcards.step} 2>&1 | logged {log:q}"
            " || recorded $?"
