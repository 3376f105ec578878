"""hpclaunch's own scripts: what stands in one of them for the request is read again, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec

from hpclaunch.job.job_script import dry_run
from hpclaunch.job.prepare import SubmitMode, prepare
from hpclaunch.plan.settings import JobSettings, Layer
from hpclaunch.port.port_script import port_script
from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import check_report
from tests.profiles import shipped

COMMAND = ("python", "train.py", "--note", "it's $HOME  # 1", *(f"--option-{n}" for n in range(12)))
LUMI: dict[str, Any] = {"site": "lumi-g", "account": "project_465000001", "name": "try", "command": COMMAND}
ENV = {
    "SHORT": "1",
    "LONG": "x" * 120,
    "TWO": "a\n# given in the request\nexport NOT=mine",
    "LOOKS": "v  # the conda environment",
}


def ported(asked: dict[str, Any], *, plain: bool = False) -> dict[str, Any]:
    layers = [Layer(origin="test", settings=msgspec.convert(asked, JobSettings))]
    _, script = dry_run(prepare(layers, SubmitMode(here=False)), plain=plain)
    site = shipped(asked["site"])
    result = port_script(script, site, site)
    check_report(script, result)
    return result.settings


@in_one_test(
    "asked, wanted",
    [
        ({"env": ENV}, {"env": ENV}),
        ({"environment": {"modules": ["git", "zlib"]}}, {"module": ("git", "zlib")}),
        ({"environment": {"conda": "a", "venv": "/v"}}, {"conda": "a", "venv": "/v"}),
        *(
            (
                {"environment": {"container": {"image": "i.sif", "binds": binds}}},
                {"container": "i.sif", "container_bind": tuple(binds)},
            )
            for binds in (["/a", "/b:/c"], ["$HOME/d e:/d"], ["/f:/$USER", "$HOME/b", "/d:/c"])
        ),
        ({"framework": "torch"}, {"tasks_per_node": 8, "gpus_per_task": 1}),
        ({"framework": "jax"}, {"tasks_per_node": 8, "gpus_per_task": 1}),
        ({"tasks_per_node": 2}, {"tasks_per_node": 2, "gpus_per_task": 4}),
        ({"tasks_per_node": 16}, {"nodes": 2, "tasks_per_node": 8, "gpus_per_task": 1}),
        ({"max_restarts": 2, "idle_timeout": "20m"}, {}),
        ({"stage": ["/data/train"], "preflight": True}, {}),
    ],
)
def test_the_request_is_read_from_the_script(asked: dict[str, Any], wanted: dict[str, Any]) -> None:
    found = ported(LUMI | asked)
    assert found["command"] == COMMAND
    assert {key: found.get(key) for key in wanted} == wanted
    assert {"env", "module", "container_bind"} & found.keys() <= wanted.keys()


def test_a_plain_script_says_the_same() -> None:
    asked = LUMI | {"env": ENV, "environment": {"modules": ["git"]}}
    assert ported(asked, plain=True) == ported(asked)


OLD = """\
#!/bin/bash
# the name in squeue
#SBATCH --job-name=try
# the project that pays
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00

# Written by hpclaunch 1.0 for lumi-g: LUMI-G at CSC, Finland, facts read 2026-11-20 to 2026-11-22.

set -eo pipefail
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"

# number of ranks of the job
export HPCLAUNCH_TASKS=16

# module given in environment
module load git

# in the container: what the job names
hpclaunch_bind "/data:/d" "$HOME/e f"

# given in the request
export WHO='it'"'"'s me'

# the software's own
export HERE=1

probe=$HPCLAUNCH_JOB_FOLDER/probe.py
timeout 300 srun --nodes=2 --ntasks=2 --ntasks-per-node=1 bash -c 'exec python3 "$1" preflight' probe "$probe"

IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :

# GPUs of each local rank, nearest to its cores
gpus=(0 1 2 3 4 5 6 7)
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind=mask_cpu:0xfe,0xfe00,0xfe0000,0xfe000000,0x1,0x2,0x3,0x4 \\
  bash -c "$rank_start" rank \\
  singularity exec i.sif python train.py
"""


def test_a_script_of_an_earlier_version_is_read_as_well() -> None:
    result = port_script(OLD, shipped("lumi-g"), shipped("lumi-g"))
    check_report(OLD, result)
    found = result.settings
    assert (found["command"], found["container"]) == (("python", "train.py"), "i.sif")
    assert found["container_bind"] == ("/data:/d", "$HOME/e f")
    assert (found["env"], found["module"]) == ({"WHO": "it's me"}, ("git",))
    assert (found["nodes"], found["tasks_per_node"], found["gpus_per_task"]) == (2, 8, 1)


def test_a_bind_that_only_the_job_knows_is_to_be_filled_in() -> None:
    text = OLD.replace('hpclaunch_bind "/data:/d"', 'hpclaunch_bind "$NOWHERE/d"')
    result = port_script(text, shipped("lumi-g"), shipped("lumi-g"))
    assert result.settings["container_bind"] == ("$HOME/e f",)
    assert 'container_bind: "$NOWHERE/d": its variables are not known here' in result.to_do
