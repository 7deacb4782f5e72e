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
            job(
                "evaluation doctor --gate --stage {params.stage} > {log:q} 2>&1 && touch {output:q}"
            )


# Offline: one job per checkpoint and stage loads the model once and scores all tiers into the store; a
# local step makes the tier files of it. A rule per stage, so that a profile can tell them apart.
for _plan in PLANS.values():

    rule:
        name:
            f"score_{_plan.name}"
        input:
            lambda w, plan=_plan: INPUTS.score([INPUTS.candidate(plan, w.candidate)]),
        output:
            made(f"{_plan.results}/by_checkpoint/{{candidate}}", "score"),
        log:
            f"{_plan.results}/eval_logs/slurm/{_plan.name}_{{candidate}}.log",
        benchmark:
            f"{_plan.results}/eval_logs/slurm/{_plan.name}_{{candidate}}.benchmark.jsonl"
        wildcard_constraints:
            candidate=INPUTS.candidates_to_score(_plan),
        conda:
            "../envs/evaluation.yaml"
        threads: 8
        params:
            stage=_plan.name,
            which=lambda w: candidate_option(candidate_of(w.candidate)),
        shell:
            job(
                "evaluation score --scores-only --stage {params.stage} {params.which} > {log:q} 2>&1"
                " || recorded $?"
            )

    spread_over_gpus(f"score_{_plan.name}")


# Several steps in one job, where the profile asks for it; preferred, as these have no wildcard.
for _plan, _run in shared_jobs():
    _rule = f"score_{_plan.name}_from_{_run[0]}"

    rule:
        name:
            _rule
        input:
            lambda w, plan=_plan, run=_run: INPUTS.score(
                [step_subject(plan, step) for step in run]
            ),
        output:
            [made(_plan.step_folder(step), "score") for step in _run],
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
        shell:
            job(
                "evaluation score --scores-only --stage {params.stage} --step {params.steps} > {log:q} 2>&1"
                " || recorded $?"
            )

    spread_over_gpus(_rule)
    set_resources(_rule, resources_of(f"score_{_plan.name}"))


for _plan in PLANS.values():

    if _plan.stage.bridge is not None:

        rule:
            name:
                f"score_{_plan.name}_bridge"
            input:
                lambda w, plan=_plan: INPUTS.bridge_score(plan),
            output:
                made(f"{_plan.results}/{{folder}}", "score"),
            log:
                f"{_plan.results}/eval_logs/slurm/{_plan.name}_{{folder}}.log",
            benchmark:
                f"{_plan.results}/eval_logs/slurm/{_plan.name}_{{folder}}.benchmark.jsonl"
            wildcard_constraints:
                folder=INPUTS.bridge_to_score(_plan),
            conda:
                "../envs/evaluation.yaml"
            threads: 8
            params:
                stage=_plan.name,
            shell:
                job(
                    "evaluation score --scores-only --stage {params.stage} --bridge > {log:q} 2>&1"
                    " || recorded $?"
                )

        spread_over_gpus(f"score_{_plan.name}_bridge")

    rule:
        name:
            f"collect_{_plan.name}"
        input:
            lambda w, plan=_plan: INPUTS.collect(plan, w.folder),
        output:
            made(f"{_plan.results}/{{folder}}", "collect"),
        log:
            f"{_plan.results}/eval_logs/collect/{{folder}}.log",
        localrule: not _plan.suite.generation_tasks  # to verify answers takes a while
        conda:
            "../envs/evaluation.yaml"
        threads: 8 if _plan.suite.generation_tasks else 1
        params:
            stage=_plan.name,
            which=lambda w: (
                "--bridge"
                if w.folder == "bridge"
                else candidate_option(candidate_of(w.folder.rpartition("/")[2]))
            ),
        shell:
            job(
                "evaluation collect --stage {params.stage} {params.which} > {log:q} 2>&1"
                " || recorded $?"
            )

    set_resources(
        f"collect_{_plan.name}",
        resources_of(f"collect_{_plan.name}", like="verification"),
    )

    # One file as the target: all it takes to make it, and a sentence where it cannot be made.
    rule:
        name:
            f"file_of_{_plan.name}"
        input:
            lambda w, plan=_plan: INPUTS.result_file(
                plan, w.folder, w.file == "bridge_deltas.json"
            ),
        output:
            update(f"{_plan.results}/{{folder}}/{{file}}"),
        log:
            f"{_plan.results}/eval_logs/expect/{{folder}}/{{file}}.log",
        wildcard_constraints:
            file="|".join(map(re.escape, result_files(_plan))),
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        shell:
            job("evaluation expect {output:q} > {log:q} 2>&1")
