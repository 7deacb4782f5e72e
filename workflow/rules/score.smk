# Offline: one job per checkpoint and stage loads the model once and scores all tiers.
# A rule per stage, since stages fill different tiers.
SCORE_PROTOCOL = [protocol.TIER2, protocol.TIER3, protocol.TIER4]

for _plan in PLANS.values():

    rule:
        name:
            f"score_{_plan.name}"
        input:
            prefilled(_plan),
            checkpoint=lambda w, plan=_plan: checkpoint_file(
                plan.checkpoint(int(w.step))
            ),
        output:
            tier_files(_plan, f"{_plan.results}/by_checkpoint/step_{{step}}"),
        log:
            f"{_plan.results}/eval_logs/slurm/{_plan.name}_step_{{step}}.log",
        benchmark:
            f"{_plan.results}/eval_logs/slurm/{_plan.name}_step_{{step}}.benchmark.jsonl"
        conda:
            "../envs/evaluation.yaml"
        threads: 8
        params:
            stage=_plan.name,
            suite=suite_fingerprint(_plan),
            protocol=SCORE_PROTOCOL,
        shell:
            "evaluation score --stage {params.stage} --step {wildcards.step} 2>&1 | logged {log:q}"

    if _plan.stage.bridge is None:
        continue

    rule:
        name:
            f"score_{_plan.name}_bridge"
        input:
            prefilled(_plan),
            checkpoint=lambda w, plan=_plan: checkpoint_file(bridge_of(plan).path),
            origin=lambda w, plan=_plan: ancient(bridge_origin(plan)),
        output:
            tier_files(_plan, _plan.bridge_folder),
        log:
            f"{_plan.results}/eval_logs/slurm/{_plan.name}_bridge.log",
        benchmark:
            f"{_plan.results}/eval_logs/slurm/{_plan.name}_bridge.benchmark.jsonl"
        conda:
            "../envs/evaluation.yaml"
        threads: 8
        params:
            stage=_plan.name,
            suite=suite_fingerprint(_plan),
            checkpoint=lambda w, plan=_plan: str(bridge_of(plan).path),
            protocol=SCORE_PROTOCOL,
        shell:
            "evaluation score --stage {params.stage} --bridge 2>&1 | logged {log:q}"
