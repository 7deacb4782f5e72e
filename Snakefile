include: "workflow/Snakefile"


workflow.default_target = "all"  # Snakemake ignores that of an included file
