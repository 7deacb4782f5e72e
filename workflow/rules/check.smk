# Before a GPU is asked for: what would stop every job of a stage stops here, in seconds. Part of every
# run in which a checkpoint of the stage is to be scored, and of no other.
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
            "evaluation doctor --gate --stage {params.stage} 2>&1 | logged {log:q} && touch {output:q}"
