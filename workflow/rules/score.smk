# Checks, before a GPU is requested and within seconds, for faults that would stop every job of a stage.
rule check:
    output:
        temp("{results}/.made/checked"),
    log:
        "{results}/eval_logs/check.log",
    localrule: True
    conda:
        "../envs/evaluation.yaml"
    params:
        stage=lambda w: RUN.by_results[w.results].name,
    shell:
        job(
            "evaluation doctor --gate --stage {params.stage} > {log:q} 2>&1 && touch {output:q}"
        )


# An offline job loads each of its checkpoints once and scores all tiers into the store. Each checkpoint gets
# a record of its own, `.made/score-<key>.json` in the folder of its results. With `generation.parts`, jobs
# that each score a part into the store come before the one that writes the record.
rule score:
    input:
        "{results}/.made/checked",
        lambda w: RUN.scored_before(w.results, w.batch, w.key, w.part),
    output:
        temp("{results}/.made/scored/{batch}-{key}{part}"),
    log:
        "{results}/eval_logs/score/{batch}-{key}{part}.log",
    benchmark:
        "{results}/eval_logs/score/{batch}-{key}{part}.benchmark.jsonl"
    conda:
        "../envs/evaluation.yaml"
    threads: 8
    params:
        stage=lambda w: RUN.by_results[w.results].name,
        which=lambda w: steps_option(w.batch, w.part),
    shell:
        job(
            "{{ evaluation score --stage {params.stage} {params.which} --planned {wildcards.key}"
            " > {log:q} 2>&1 || recorded $?; }} && touch {output:q}"
        )


# Makes the tier files of a checkpoint from its stored scores, and verifies generated answers: without GPU.
rule collect:
    input:
        lambda w: RUN.scored(w.results, w.place),
    output:
        "{results}/{place}/.made/collect-{key}.json",
    log:
        "{results}/eval_logs/collect/{place}-{key}.log",
    localrule: not RUN.verifies
    conda:
        "../envs/evaluation.yaml"
    threads: 8 if RUN.verifies else 1
    params:
        stage=lambda w: RUN.by_results[w.results].name,
        which=lambda w: place_option(w.place),
    shell:
        job(
            "evaluation collect --stage {params.stage} {params.which} --planned {wildcards.key}"
            " > {log:q} 2>&1 || recorded $?"
        )


# A single file of a checkpoint's results as a target; prints why it cannot be made.
rule file:
    input:
        lambda w: RUN.result(w.results, w.place),
    output:
        update("{results}/{place}/{file}"),
    log:
        "{results}/eval_logs/file/{place}/{file}.log",
    localrule: True
    conda:
        "../envs/evaluation.yaml"
    shell:
        job("evaluation expect {output:q} > {log:q} 2>&1")
