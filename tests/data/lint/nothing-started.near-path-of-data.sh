EVAL_DATA_PATH=./example_data/video.json
RUN_CONFIG=./conf/run.yaml
OUTPUT=./results
PYTHON=python3
export LOG=/tmp/$SLURM_JOB_ID
# site: unknown
