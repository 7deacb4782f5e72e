# Results from stored scores, for each checkpoint; then what shows them, for each stage and for all. Cheap and
# local, except verifying answers.
CAPTIONS = {
    SUMMARY_TABLE: ("summary", "tables", {"table": "all scores and deltas"}),
    PAGE: ("stage", "report", {"page": "verdict, curves, deltas, flips, trust"}),
    "curves": ("curves", None, {"figure": "values over steps"}),
    "heat": ("heat", None, {"figure": "changes of all checkpoints"}),
    "moves": ("moves", None, {"figure": "questions gained and lost"}),
    "forest": ("forest", None, {"figure": "deltas against the bridge"}),
}


def shown(path, category):
    """Return an output of a report, captioned for Snakemake's own report if it has a caption."""
    item, _, kind = path.stem.rpartition("_")
    found = CAPTIONS.get(path.name) or CAPTIONS.get(kind)
    if category == "overview" and path.name == PAGE:
        found = ("front", None, {"page": "all stages"})
    if not found:
        return update(str(path))
    return report(
        update(str(path)),
        caption=f"../report/{found[0]}.rst",
        category=category,
        subcategory=found[1] or item or None,
        labels=found[2],
    )


for _plan in PLANS.values():

    rule:
        name:
            f"collect_{_plan.name}"
        input:
            lambda w, plan=_plan: INPUTS.step(
                STEPS["collect"], INPUTS.at(plan, w.folder)
            ),
        output:
            made(f"{_plan.results}/{{folder}}", "collect"),
        log:
            f"{_plan.results}/eval_logs/collect/{{folder}}.log",
        localrule: not STEPS["collect"].takes_long(_plan)
        conda:
            "../envs/evaluation.yaml"
        threads: 8 if STEPS["collect"].takes_long(_plan) else 1
        params:
            stage=_plan.name,
            which=lambda w: option_of(w.folder),
        shell:
            job(
                "evaluation collect --stage {params.stage} {params.which} > {log:q} 2>&1"
                " || recorded $?"
            )

    set_resources(
        f"collect_{_plan.name}",
        resources_of(f"collect_{_plan.name}", like="verification"),
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


# Reports are functions of the results: an output that each run lacks has them made at every call.
for _plan in PLANS.values():

    rule:
        name:
            f"report_{_plan.name}"
        input:
            lambda w, plan=_plan: INPUTS.report(plan),
        output:
            temp(INPUTS.reported(_plan.name)),
            [shown(_plan.results / name, _plan.name) for name in stage_outputs(_plan)],
        log:
            f"{_plan.results}/eval_logs/report.log",
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        params:
            stage=_plan.name,
        shell:
            job(
                "(evaluation report --stage {params.stage} > {log:q} 2>&1 || recorded $?)"
                " && touch {output[0]:q}"
            )


rule front_page:
    input:
        [INPUTS.reported(name) for name in PLANS],
    output:
        temp(INPUTS.reported("")),
        [
            shown(Path(CONFIG.results) / name, "overview")
            for name in (*FRONT_FILES, *(COMPARISON_FILES if CONFIG.runs else ()))
        ],
    log:
        f"{CONFIG.results}/front_page.log",
    localrule: True
    conda:
        "../envs/evaluation.yaml"
    shell:
        job(
            "(evaluation report --front > {log:q} 2>&1 || recorded $?) && touch {output[0]:q}"
        )
