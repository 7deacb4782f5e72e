"""What talks to Snakemake and Slurm: a run's configuration, its jobs, what it ends with."""
