# Its own call, `snakemake prefill`: these jobs need the internet and no GPU. They fetch and tokenize data
# for the offline jobs.
rule prefill:
    input:
        lambda w: RUN.prefilled,
    localrule: True


# All caches of one tokenizer and sequence length; what is there already is kept.
rule prefill_caches:
    output:
        f"{RUN.config.cache}/{{setup}}/.made/prefill-{{key}}.json",
    log:
        f"{RUN.config.cache}/{{setup}}/logs/prefill-{{key}}.log",
    conda:
        "../envs/evaluation.yaml"
    threads: 4  # long texts are tokenized by several processes
    shell:
        job(
            "evaluation prefill --setup {wildcards.setup:q} --planned {wildcards.key} > {log:q} 2>&1"
        )
