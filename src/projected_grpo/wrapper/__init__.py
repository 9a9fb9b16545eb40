"""What `./snakemake` does once there is an environment: the command line, the run and its end."""
