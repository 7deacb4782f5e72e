# Checks, before a GPU is requested and within seconds, for faults that would stop every job of a stage.
# Runs only if a checkpoint of the stage is to be scored.
for _plan in PLANS.values():

    rule:
        name:
            f"check_{_plan.name}"
        input:
            prefilled(_plan),
        output:
            temp(INPUTS.checked(_plan)),
        log:
            str(_plan.check_log),
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        params:
            stage=_plan.name,
        shell:
            job(
                "evaluation doctor --gate --stage {params.stage} > {log:q} 2>&1 && touch {output:q}"
            )


# An offline job loads each of its checkpoints once and scores all tiers into the store; the rule `collect`
# makes the tier files from it. Each stage has its own rules, so that a profile can set their resources.
for _rule in score_rules(INPUTS, checkpoints_per_job):

    rule:
        name:
            _rule.name
        input:
            _rule.input,
        output:
            [made(folder, "score") for folder in _rule.folders],
        log:
            f"{_rule.plan.results}/eval_logs/slurm/{_rule.log}.log",
        benchmark:
            f"{_rule.plan.results}/eval_logs/slurm/{_rule.log}.benchmark.jsonl"
        wildcard_constraints:
            checkpoint=_rule.checkpoint,
        conda:
            "../envs/evaluation.yaml"
        threads: 8
        params:
            stage=_rule.plan.name,
            which=_rule.which,
        shell:
            job(
                "evaluation score --scores-only --stage {params.stage} {params.which} > {log:q} 2>&1"
                " || recorded $?"
            )

    if _rule.is_shared:
        set_resources(_rule.name, resources_of(f"score_{_rule.plan.name}"))
