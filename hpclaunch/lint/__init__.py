"""Lint of batch scripts: what is wrong with an sbatch or qsub script, and what would be right."""
