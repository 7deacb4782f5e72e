# Online, CPU only: tokens, examples and prompts are fetched and cached for the offline jobs.
SETUPS = sorted({plan.cache.name for plan in PLANS.values()})


wildcard_constraints:
    setup="|".join(map(re.escape, SETUPS)),
    stage="|".join(map(re.escape, PLANS)),
    item=NAME,
    step=r"\d+",


rule prefill_tokenizer:
    output:
        f"{CONFIG.cache}/{{setup}}/tokenizer/meta.json",
    log:
        f"{CONFIG.cache}/{{setup}}/logs/tokenizer.log",
    conda:
        "../envs/evaluation.yaml"
    params:
        stage=lambda w: owner(w, "tokenizer").name,
        protocol=protocol.PREFILL_SLICE,
    shell:
        "evaluation prefill --stage {params.stage} --tokenizer 2>&1 | logged {log:q}"


rule prefill_slice:
    input:
        f"{CONFIG.cache}/{{setup}}/tokenizer/meta.json",
    output:
        tokens=f"{CONFIG.cache}/{{setup}}/ppl_slices/{{item}}/packed_tokens.pt",
        index=f"{CONFIG.cache}/{{setup}}/ppl_slices/{{item}}/index.pt",
        meta=f"{CONFIG.cache}/{{setup}}/ppl_slices/{{item}}/meta.json",
    log:
        f"{CONFIG.cache}/{{setup}}/logs/slice_{{item}}.log",
    benchmark:
        f"{CONFIG.cache}/{{setup}}/logs/slice_{{item}}.benchmark.jsonl"
    conda:
        "../envs/evaluation.yaml"
    threads: 4
    params:
        stage=lambda w: owner(w, "slice").name,
        definition=lambda w: definition(w, "slice"),
        protocol=protocol.PREFILL_SLICE,
    shell:
        "evaluation prefill --stage {params.stage} --slice {wildcards.item} 2>&1 | logged {log:q}"


rule prefill_task:
    input:
        f"{CONFIG.cache}/{{setup}}/tokenizer/meta.json",
    output:
        examples=f"{CONFIG.cache}/{{setup}}/cf_tasks/{{item}}/examples.jsonl",
        meta=f"{CONFIG.cache}/{{setup}}/cf_tasks/{{item}}/meta.json",
    log:
        f"{CONFIG.cache}/{{setup}}/logs/task_{{item}}.log",
    benchmark:
        f"{CONFIG.cache}/{{setup}}/logs/task_{{item}}.benchmark.jsonl"
    conda:
        "../envs/evaluation.yaml"
    params:
        stage=lambda w: owner(w, "task").name,
        definition=lambda w: definition(w, "task"),
        protocol=protocol.PREFILL_TASK,
    shell:
        "evaluation prefill --stage {params.stage} --task {wildcards.item} 2>&1 | logged {log:q}"


rule prefill_probes:
    input:
        f"{CONFIG.cache}/{{setup}}/tokenizer/meta.json",
    output:
        prompts=f"{CONFIG.cache}/{{setup}}/sft_native/{{stage}}/prompts.jsonl",
        meta=f"{CONFIG.cache}/{{setup}}/sft_native/{{stage}}/meta.json",
    log:
        f"{CONFIG.cache}/{{setup}}/logs/probes_{{stage}}.log",
    conda:
        "../envs/evaluation.yaml"
    params:
        definition=lambda w: suite_fingerprint(PLANS[w.stage]),
        protocol=protocol.PREFILL_PROBES,
    shell:
        "evaluation prefill --stage {wildcards.stage} --probes 2>&1 | logged {log:q}"
