# Tables, deltas, figures and pages are a function of the results: made at every call, and written only
# where they change. A file named by the call shows that it made them; the next call removes it.
rule report:
    input:
        lambda w: RUN.collected(*RUN.by_results),
    output:
        call=f"{RESULTS}/{SHOWN}",
        front=shown(f"{RESULTS}/{PAGE}", "front", page="all stages"),
        pages=[
            shown(f"{stage}/{PAGE}", "stage", page="verdict, curves")
            for stage in RUN.by_results
        ],
        tables=[
            shown(f"{stage}/summary.csv", "summary", table="all")
            for stage in RUN.by_results
        ],
    log:
        f"{RESULTS}/report.log",
    localrule: True
    conda:
        "../envs/evaluation.yaml"
    params:
        earlier=f"{shlex.quote(RESULTS)}/.made/shown-*",
    shell:
        job(
            "evaluation report > {log:q} 2>&1 || recorded $?; rm -f {params.earlier} && touch {output.call:q}"
        )


rule report_of_stage:
    input:
        lambda w: RUN.collected(w.results),
    output:
        f"{{results}}/{SHOWN}",
    log:
        "{results}/eval_logs/report.log",
    localrule: True
    conda:
        "../envs/evaluation.yaml"
    params:
        stage=lambda w: RUN.by_results[w.results].name,
    shell:
        job(
            "evaluation report --stage {params.stage} > {log:q} 2>&1 || recorded $?;"
            " rm -f {wildcards.results:q}/.made/shown-* && touch {output:q}"
        )


for _plan in RUN.plans.values():

    rule:
        name:
            _plan.name
        input:
            f"{_plan.results}/{SHOWN}",
        localrule: True
