include: "workflow/Snakefile"


rule default:  # Snakemake ignores that of an included file
    default_target: True
    input:
        rules.all.input,
    localrule: True
