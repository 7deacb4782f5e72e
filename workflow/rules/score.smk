# Offline: one job per checkpoint and stage loads the model once and scores all tiers.
# A rule per stage, since stages fill different tiers.
SCORE_PROTOCOL = [TIERS["tier2"].protocol, TIERS["tier3"].protocol, TIERS["tier4"].protocol]

for _plan in PLANS.values():

    rule:
        name:
            f"score_{_plan.name}"
        input:
            lambda w, plan=_plan, caches=prefilled(_plan): caches_checked(
                plan, caches, tier_files(plan, plan.step_folder(w.step))
            ),
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


# Several steps in one job, where the profile asks for it; preferred, as these have no wildcard.
for _plan, _run in shared_jobs():
    _rule = f"score_{_plan.name}_from_{_run[0]}"

    rule:
        name:
            _rule
        input:
            lambda w, plan=_plan, run=_run, caches=prefilled(_plan): caches_checked(
                plan,
                caches,
                [file for n in run for file in tier_files(plan, plan.step_folder(n))],
            ),
            checkpoints=lambda w, plan=_plan, run=_run: [
                checkpoint_file(plan.checkpoint(step)) for step in run
            ],
        output:
            [file for n in _run for file in tier_files(_plan, _plan.step_folder(n))],
        log:
            f"{_plan.results}/eval_logs/slurm/{_plan.name}_from_{_run[0]}.log",
        benchmark:
            f"{_plan.results}/eval_logs/slurm/{_plan.name}_from_{_run[0]}.benchmark.jsonl"
        conda:
            "../envs/evaluation.yaml"
        threads: 8
        params:
            stage=_plan.name,
            steps=_run,
            suite=suite_fingerprint(_plan),
            protocol=SCORE_PROTOCOL,
        shell:
            "evaluation score --stage {params.stage} --step {params.steps} 2>&1 | logged {log:q}"

    workflow.get_rule(_rule).resources.update(resources_of(f"score_{_plan.name}"))


for _plan in PLANS.values():
    if _plan.stage.bridge is None:
        continue

    rule:
        name:
            f"score_{_plan.name}_bridge"
        input:
            lambda w, plan=_plan, caches=prefilled(_plan): caches_checked(
                plan, caches, tier_files(plan, plan.bridge_folder)
            ),
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
