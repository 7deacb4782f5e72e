include: "workflow/Snakefile"


workflow.default_target = "all"  # Snakemake ignores the one of a file that is included
