#!/bin/bash
#SBATCH --time=24:00:00
snakemake -n
snakemake --cores 8
rsync -avn results/ /archive/ | tail
if nextflow run main.nf -preview; then nextflow run main.nf; fi
python train.py --dry_run False -n 4
make -C src -j8
sort -n a.txt
[ -n "$PLAN" ] && make -n
[[ $1 == real ]] || rclone copy -n results archive:
# site: unknown
