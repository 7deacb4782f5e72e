# Before a GPU is asked for: what would stop every job of a stage stops here, in seconds. Part of every
# run in which a checkpoint of the stage has no results yet, and of no other; its output lasts as long.
for _plan in PLANS.values():

    rule:
        name:
            f"check_{_plan.name}"
        input:
            prefilled(_plan),
        output:
            temp(check_file(_plan)),
        log:
            str(_plan.check_log),
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        params:
            stage=_plan.name,
        shell:
            "evaluation doctor --gate --stage {params.stage} 2>&1 | logged {log:q} && touch {output:q}"
