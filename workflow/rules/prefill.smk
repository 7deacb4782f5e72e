# These rules need the internet and no GPU: they fetch and tokenize data for the offline jobs.
CACHE = f"{CONFIG.cache}/{{setup}}"


wildcard_constraints:
    setup="|".join(
        re.escape(name) for name in sorted({p.cache.name for p in PLANS.values()})
    ),
    item=NAME,
    checkpoint=RESULTS,
    folder=CHECKPOINT,


rule prefill_tokenizer:
    input:
        lambda w: INPUTS.cache(INPUTS.entry("tokenizer", w.setup)),
    output:
        made(f"{CACHE}/tokenizer", "prefill"),
    log:
        f"{CACHE}/logs/tokenizer.log",
    conda:
        "../envs/evaluation.yaml"
    params:
        stage=lambda w: INPUTS.entry("tokenizer", w.setup).plan.name,
    shell:
        job("evaluation prefill --stage {params.stage} --tokenizer > {log:q} 2>&1")


set_resources(
    "prefill_tokenizer", resources_of("prefill_tokenizer", like="prefill_tokenizer")
)


# One rule for each tier's caches: `prefill_slice`, `prefill_task`, ... A rule that the profile does not
# name gets the resources of `prefill_tokenizer`.
for _tier in TIERS.values():

    rule:
        name:
            f"prefill_{_tier.cache.name}"
        input:
            lambda w, kind=_tier.cache.name: INPUTS.cache(
                INPUTS.entry(kind, w.setup, w.item)
            ),
        output:
            made(f"{CACHE}/{_tier.cache.folder}/{{item}}", "prefill"),
        log:
            f"{CACHE}/logs/{_tier.cache.name}_{{item}}.log",
        benchmark:
            f"{CACHE}/logs/{_tier.cache.name}_{{item}}.benchmark.jsonl"
        conda:
            "../envs/evaluation.yaml"
        threads: 4 if _tier.kind == "nats" else 1  # long texts are tokenized by several processes
        params:
            stage=lambda w, kind=_tier.cache.name: (
                INPUTS.entry(kind, w.setup, w.item).plan.name
            ),
            entry=lambda w, tier=_tier: tier.cache.option(w.item),
        shell:
            job(
                "evaluation prefill --stage {params.stage} {params.entry} > {log:q} 2>&1"
            )

    set_resources(
        f"prefill_{_tier.cache.name}",
        resources_of(f"prefill_{_tier.cache.name}", like="prefill_tokenizer"),
    )


# Many tasks of a provider per job. Snakemake prefers these rules, as they have no wildcard.
for _number, (_plan, _entries) in enumerate(INPUTS.provided_batches()):
    _rule = f"provided_{_plan.name}_from_{_number}"

    rule:
        name:
            _rule
        input:
            lambda w, entries=_entries: INPUTS.provided(entries),
        output:
            [made(entry.folder, "prefill") for entry in _entries],
        log:
            f"{_plan.cache}/logs/{_rule}.log",
        benchmark:
            f"{_plan.cache}/logs/{_rule}.benchmark.jsonl"
        conda:
            "../envs/evaluation.yaml"
        params:
            stage=_plan.name,
            kind=TIERS[_entries[0].tier].cache.flag,
            names=[entry.name for entry in _entries],
        shell:
            job(
                "evaluation prefill --stage {params.stage} {params.kind} {params.names} > {log:q} 2>&1"
            )

    set_resources(
        _rule, resources_of(f"prefill_{_entries[0].kind}", like="prefill_tokenizer")
    )
