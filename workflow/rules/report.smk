# The steps that make results from stored scores, as the table of steps (evaluation/dependencies/steps.py) has
# them: for each checkpoint, for each stage, or once for the run. Cheap and local, except verifying answers.
CAPTIONS = {
    "tables": {
        SUMMARY_TABLE: ("summary", "tables", {"table": "all scores and deltas"}),
        PAGE: ("stage", "report", {"page": "verdict, curves, deltas, flips, trust"}),
    },
    "figures": {
        "curves": ("curves", None, {"figure": "values over steps"}),
        "measures": (
            "measures",
            None,
            {"figure": "measures beside the headline, over steps"},
        ),
        "forest": ("forest", None, {"figure": "deltas against the bridge"}),
    },
    "comparison": {"comparison.html": ("comparison", None, {"page": "other runs"})},
    "front": {PAGE: ("front", None, {"page": "all stages"})},
}


def outputs(step, target):
    """Return the outputs of a step: its record, and its files, captioned ones for Snakemake's report."""
    place, captions = place_of(target), CAPTIONS.get(step.name, {})
    files = [made(place.folder, step.name)]
    for path in (path for paths in step.outputs(place).values() for path in paths):
        kind, file = path.stem.rpartition("_")[2], update(str(path))
        if found := captions.get(path.name) or captions.get(kind):
            file = report(
                file,
                caption=f"../report/{found[0]}.rst",
                category=place.plan.name if step.scope == "stage" else "overview",
                subcategory=found[1] or path.stem.rpartition("_")[0] or None,
                labels=found[2],
            )
        files.append(file)
    return files


for _step, _plan in STEPS_OF_CHECKPOINTS:

    rule:
        name:
            f"{_step.name}_{_plan.name}"
        input:
            lambda w, step=_step, plan=_plan: INPUTS.step(
                step, INPUTS.at(plan, w.folder)
            ),
        output:
            made(f"{_plan.results}/{{folder}}", _step.name),
        log:
            f"{_plan.results}/eval_logs/{_step.name}/{{folder}}.log",
        wildcard_constraints:
            folder=CHECKPOINT if _step.scope == "checkpoint" else COMPARED,
        localrule: not _step.takes_long(_plan)
        conda:
            "../envs/evaluation.yaml"
        threads: 8 if _step.takes_long(_plan) else 1
        params:
            stage=_plan.name,
            command=_step.words,
            which=lambda w: option_of(w.folder),
        shell:
            job(
                "evaluation {params.command} --stage {params.stage} {params.which} > {log:q} 2>&1"
                " || recorded $?"
            )

    set_resources(
        f"{_step.name}_{_plan.name}",
        resources_of(f"{_step.name}_{_plan.name}", like="verification"),
    )


for _plan in PLANS.values():

    # Makes a single requested file, or prints why it cannot be made.
    rule:
        name:
            f"file_of_{_plan.name}"
        input:
            lambda w, plan=_plan: INPUTS.result_file(plan, w.folder, w.file),
        output:
            update(f"{_plan.results}/{{folder}}/{{file}}"),
        log:
            f"{_plan.results}/eval_logs/expect/{{folder}}/{{file}}.log",
        wildcard_constraints:
            file="|".join(map(re.escape, INPUTS.result_files(_plan))),
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        shell:
            job("evaluation expect {output:q} > {log:q} 2>&1")


for _step, _target in STEPS_OF_STAGES + STEPS_OF_RUN:

    rule:
        name:
            rule_of(_step, _target)
        input:
            lambda w, step=_step, target=_target: INPUTS.step(step, target),
        output:
            outputs(_step, _target),
        log:
            log_of(_step, _target),
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        params:
            command=_step.words,
            which=f"--stage {_target.name}" if _step.scope == "stage" else "",
        shell:
            job(
                "evaluation {params.command} {params.which} > {log:q} 2>&1 || recorded $?"
            )
