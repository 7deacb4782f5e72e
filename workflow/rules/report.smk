# Cheap and local: tables, the report and figures of each stage.
FIGURES = {"curves": "values over steps", "forest": "deltas against the bridge"}

for _plan in PLANS.values():

    rule:
        name:
            f"tables_{_plan.name}"
        input:
            lambda w, plan=_plan: step_files(plan),
        output:
            summary=report(
                f"{_plan.results}/summary.csv",
                caption="../report/summary.rst",
                category=_plan.name,
                subcategory="tables",
                labels={"table": "all scores and deltas"},
            ),
            parquet=f"{_plan.results}/summary.parquet",
            markdown=f"{_plan.results}/summary.md",
            report=report(
                f"{_plan.results}/report.html",
                caption="../report/stage.rst",
                category=_plan.name,
                subcategory="report",
                labels={"page": "verdict, curves, deltas, flips, trust"},
            ),
            bridge=[] if _plan.stage.bridge is None else bridge_files(_plan),
        log:
            f"{_plan.results}/eval_logs/tables.log",
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        params:
            stage=_plan.name,
            protocol=[protocol.BRIDGE, protocol.REPORT],
        shell:
            "evaluation tables --stage {params.stage} 2>&1 | logged {log:q}"

    rule:
        name:
            f"figures_{_plan.name}"
        input:
            f"{_plan.results}/summary.parquet",
            [] if _plan.stage.bridge is None else bridge_files(_plan),
        output:
            [
                report(
                    file,
                    caption=f"../report/{kind}.rst",
                    category=_plan.name,
                    subcategory=tier,
                    labels={"figure": FIGURES[kind]},
                )
                for (kind, tier), file in figure_files(_plan).items()
            ],
        log:
            f"{_plan.results}/eval_logs/figures.log",
        localrule: True
        conda:
            "../envs/evaluation.yaml"
        params:
            stage=_plan.name,
            protocol=[protocol.BRIDGE, protocol.REPORT],
        shell:
            "evaluation figures --stage {params.stage} 2>&1 | logged {log:q}"


rule front_page:
    input:
        [f"{plan.results}/summary.csv" for plan in PLANS.values()],
    output:
        report(
            FRONT_PAGE,
            caption="../report/front.rst",
            category="overview",
            labels={"page": "all stages"},
        ),
        f"{CONFIG.results}/overview.rst",
    log:
        f"{CONFIG.results}/front_page.log",
    localrule: True
    conda:
        "../envs/evaluation.yaml"
    params:
        protocol=[protocol.BRIDGE, protocol.REPORT],
    shell:
        "evaluation front-page 2>&1 | logged {log:q}"
