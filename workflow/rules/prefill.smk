# Online, CPU only: tokens, examples and prompts are fetched and cached for the offline jobs.
CACHE = f"{CONFIG.cache}/{{setup}}"


wildcard_constraints:
    setup="|".join(
        re.escape(name) for name in sorted({p.cache.name for p in PLANS.values()})
    ),
    stage="|".join(map(re.escape, PLANS)),
    item=NAME,
    step=r"\d+",
    folder=CHECKPOINT,


rule prefill_tokenizer:
    input:
        lambda w: INPUTS.cache(INPUTS.entry("tokenizer", w.setup, "")),
    output:
        made(f"{CACHE}/tokenizer", "prefill"),
    log:
        f"{CACHE}/logs/tokenizer.log",
    conda:
        "../envs/evaluation.yaml"
    params:
        stage=lambda w: INPUTS.entry("tokenizer", w.setup, "").plan.name,
    shell:
        "evaluation prefill --stage {params.stage} --tokenizer 2>&1 | logged {log:q}"


rule prefill_slice:
    input:
        lambda w: INPUTS.cache(INPUTS.entry("slice", w.setup, w.item)),
    output:
        made(f"{CACHE}/ppl_slices/{{item}}", "prefill"),
    log:
        f"{CACHE}/logs/slice_{{item}}.log",
    benchmark:
        f"{CACHE}/logs/slice_{{item}}.benchmark.jsonl"
    conda:
        "../envs/evaluation.yaml"
    threads: 4
    params:
        stage=lambda w: INPUTS.entry("slice", w.setup, w.item).plan.name,
    shell:
        "evaluation prefill --stage {params.stage} --slice {wildcards.item} 2>&1 | logged {log:q}"


rule prefill_task:
    input:
        lambda w: INPUTS.cache(INPUTS.entry("task", w.setup, w.item)),
    output:
        made(f"{CACHE}/cf_tasks/{{item}}", "prefill"),
    log:
        f"{CACHE}/logs/task_{{item}}.log",
    benchmark:
        f"{CACHE}/logs/task_{{item}}.benchmark.jsonl"
    conda:
        "../envs/evaluation.yaml"
    params:
        stage=lambda w: INPUTS.entry("task", w.setup, w.item).plan.name,
    shell:
        "evaluation prefill --stage {params.stage} --task {wildcards.item} 2>&1 | logged {log:q}"


rule prefill_probes:
    input:
        lambda w: INPUTS.cache(INPUTS.entry("probes", w.setup, w.stage)),
    output:
        made(f"{CACHE}/sft_native/{{stage}}", "prefill"),
    log:
        f"{CACHE}/logs/probes_{{stage}}.log",
    conda:
        "../envs/evaluation.yaml"
    shell:
        "evaluation prefill --stage {wildcards.stage} --probes 2>&1 | logged {log:q}"
