# Cheap and local: each step's deltas against the bridge, from stored per-item scores.
for _plan in PLANS.values():
    if _plan.stage.bridge is None:
        continue

    rule:
        name:
            f"deltas_{_plan.name}"
        input:
            lambda w, plan=_plan: INPUTS.deltas(plan, w.candidate),
        output:
            made(f"{_plan.results}/by_checkpoint/{{candidate}}", "deltas"),
        log:
            f"{_plan.results}/eval_logs/deltas_{{candidate}}.log",
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        params:
            stage=_plan.name,
            which=lambda w: candidate_option(candidate_of(w.candidate)),
        shell:
            job(
                "evaluation deltas --stage {params.stage} {params.which} > {log:q} 2>&1"
                " || recorded $?"
            )


# Cheap and local: tables, the report and figures of each stage.
FIGURES = {
    "curves": "values over steps",
    "measures": "measures beside the headline, over steps",
    "forest": "deltas against the bridge",
    "moves": "pass rates before and after",
}

for _plan in PLANS.values():

    rule:
        name:
            f"tables_{_plan.name}"
        input:
            lambda w, plan=_plan: INPUTS.tables(plan),
        output:
            made(_plan.results, "tables"),
            summary=report(
                update(f"{_plan.results}/{SUMMARY_TABLE}"),
                caption="../report/summary.rst",
                category=_plan.name,
                subcategory="tables",
                labels={"table": "all scores and deltas"},
            ),
            others=[update(file) for file in other_files(_plan)],
            report=report(
                update(f"{_plan.results}/{PAGE}"),
                caption="../report/stage.rst",
                category=_plan.name,
                subcategory="report",
                labels={"page": "verdict, curves, deltas, flips, trust"},
            ),
        log:
            f"{_plan.results}/eval_logs/tables.log",
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        params:
            stage=_plan.name,
        shell:
            job("evaluation tables --stage {params.stage} > {log:q} 2>&1")

    rule:
        name:
            f"figures_{_plan.name}"
        input:
            lambda w, plan=_plan: INPUTS.figures(plan),
        output:
            made(_plan.results, "figures"),
            [
                report(
                    update(str(file)),
                    caption=f"../report/{kind}.rst",
                    category=_plan.name,
                    subcategory=tier,
                    labels={"figure": FIGURES[kind]},
                )
                for (kind, tier), file in _plan.figures.items()
            ],
        log:
            f"{_plan.results}/eval_logs/figures.log",
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        params:
            stage=_plan.name,
        shell:
            job("evaluation figures --stage {params.stage} > {log:q} 2>&1")


if CONFIG.runs:

    rule comparison:
        input:
            lambda w: INPUTS.comparison(),
        output:
            made(CONFIG.results, "comparison"),
            [update(f"{CONFIG.results}/comparison.{end}") for end in ("csv", "json")],
            report(
                update(f"{CONFIG.results}/comparison.html"),
                caption="../report/comparison.rst",
                category="overview",
                labels={"page": "other runs"},
            ),
        log:
            f"{CONFIG.results}/comparison.log",
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        shell:
            job("evaluation comparison > {log:q} 2>&1 || recorded $?")


rule front_page:
    input:
        lambda w: INPUTS.front(),
    output:
        made(CONFIG.results, "front"),
        report(
            update(FRONT_PAGE),
            caption="../report/front.rst",
            category="overview",
            labels={"page": "all stages"},
        ),
        [update(f"{CONFIG.results}/{name}") for name in FRONT_FILES if name != PAGE],
    log:
        f"{CONFIG.results}/front_page.log",
    localrule: True
    conda:
        "../envs/evaluation.yaml"
    shell:
        job("evaluation front-page > {log:q} 2>&1")
