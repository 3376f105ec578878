#!/bin/bash
#SBATCH --time=1:00:00
# A comment in backquotes ends at the closing one, whatever is in it; bash -n 5.2 reads this script.
nextflow run main.nf            `# the pipeline (a fork)` \
    -params-file params.json    `# it's "g": instead of a file/path \` (see the page)` \
    -resume
echo "`date # now (utc)`"
# site: unknown
