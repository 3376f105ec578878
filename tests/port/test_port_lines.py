"""Single lines of a script: sizes, queues, variables, launchers, containers, and what is left to the user."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hpclaunch.lint.lint_script import find_faults
from hpclaunch.port.port_script import Ported, port_script
from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import checked_port, rendered
from tests.profiles import shipped

HEAD = (
    "#!/bin/bash\n#SBATCH -A project_465000001 -p standard-g\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=8\n"
    "#SBATCH --gpus-per-node=8\n#SBATCH -t 0:30:00\n"
)


def port(text: str, source: str | None = "lumi-g", to: str = "polaris") -> Ported:
    return checked_port(text, to, source)


def settings(text: str, **more: Any) -> dict[str, Any]:
    return port(text, **more).settings


def fate(ported: Ported, line: int) -> tuple[str, str]:
    """Whether a line is kept, changed or left out, and to what or why."""
    report = ported.report
    for name, lines in (("kept", report.kept), ("changed", report.changed), ("left", report.left_out)):
        for one in lines:
            if one.line == line:
                return name, getattr(one, "to", getattr(one, "why", ""))
    raise AssertionError(f"line {line} is not in the report")


def test_the_same_number_of_gpus_on_smaller_nodes_is_said() -> None:
    ported = port(HEAD + "srun ./app\n")
    sizes = {key: ported.settings[key] for key in ("nodes", "tasks_per_node", "gpus_per_task")}
    assert sizes == {"nodes": 4, "tasks_per_node": 4, "gpus_per_task": 1}
    (changed,) = [one for one in ported.report.changed if one.line == 3]
    assert "16 ranks on 2 nodes with 16 GPUs = 4 nodes x 4 ranks with 16 GPUs, 4 per node" in changed.why
    assert changed.source.startswith("https://")


def test_six_ranks_of_six_gpus_keep_their_gpus() -> None:
    text = "#!/bin/bash\n#SBATCH -N 1 -n 6 --gpus-per-task=1\nsrun ./app\n"
    assert {k: settings(text, source=None)[k] for k in ("nodes", "tasks_per_node")} == {
        "nodes": 2,
        "tasks_per_node": 3,
    }


def test_a_walltime_that_no_queue_takes_is_shortened_and_said() -> None:
    ported = port(HEAD.replace("-N 2", "-N 8").replace("0:30:00", "2-00:00:00") + "srun ./app\n")
    assert (ported.settings["nodes"], ported.settings["queue"], ported.settings["time"]) == (
        16,
        "prod",
        "03:00:00",
    )
    assert any(text.startswith("time: 48:00:00 does not fit") for text in ported.to_do)
    (changed,) = [one for one in ported.report.changed if one.line == 6]
    assert changed.why == "undecided: 48:00:00 does not fit: prod takes 16 nodes for 03:00:00"


def test_nodes_that_no_queue_takes_are_undecided_and_what_fits_is_said() -> None:
    ported = port(HEAD.replace("-N 2", "-N 500") + "srun ./app\n", to="leonardo")
    found = ported.settings
    assert (found["queue"], found["nodes"], found["tasks_per_node"]) == ("boost_qos_bprod", 256, 4)
    (changed,) = [one for one in ported.report.changed if one.line == 3]
    fits = "no queue of leonardo takes 1000 nodes for this time, boost_qos_bprod takes 256"
    ranks = "which the job file has: 1024 ranks here instead of 4000"
    assert changed.why.startswith(f"undecided: {fits}, {ranks}; 4000 ranks on 500 nodes")
    assert f"nodes: {fits}, {ranks}" in ported.to_do
    assert find_faults(rendered(ported)[1], shipped("leonardo")) == ()


def test_a_job_that_no_queue_takes_is_undecided() -> None:
    site = shipped("leonardo")
    queues = {"one": msgspec.structs.replace(site.queues["boost_usr_prod"], by_request=True)}
    text = HEAD.replace(" -p", "\n#SBATCH -p") + "srun ./app\n"
    ported = port_script(text, None, msgspec.structs.replace(site, queues=queues))
    assert fate(ported, 3)[1].startswith("undecided: no queue of the profile takes such a job")
    assert any(text.startswith("queue: no queue of the profile") for text in ported.to_do)


def test_a_qos_has_the_limits_of_its_partition() -> None:
    """The QOS debug of Frontier states no number of nodes, its partition does."""
    ported = port(HEAD.replace("-N 2", "-N 20000") + "srun ./app\n", to="frontier")
    assert ported.settings["nodes"] == 9472


def test_an_account_is_a_placeholder_of_the_right_form() -> None:
    text = "#!/bin/bash\n#PBS -A Proj\n#PBS -l select=1:system=polaris\n#PBS -q debug\nmpiexec -n 4 ./app\n"
    assert settings(text, source="polaris", to="lumi-g")["account"] == "project_000000000"
    assert settings(text, source="polaris", to="polaris")["account"] == "Proj"


@pytest.mark.parametrize("account", ["<Proj>", "--time=3"])
def test_an_account_that_cannot_be_written_is_a_placeholder_on_the_same_machine_too(account: str) -> None:
    head = f"#!/bin/bash\n#PBS -A {account}\n#PBS -l select=1:system=polaris\n#PBS -q debug\n"
    text = f"{head}mpiexec -n 4 ./app\n"
    assert settings(text, source="polaris", to="polaris")["account"] == "FILL_IN_ACCOUNT"


@in_one_test("name", ["SBATCH_CONSTRAINT", "SLURM_CPU_BIND", "SRUN_CPUS_PER_TASK", "PBS_O_WORKDIR"])
@in_one_test("line", ["export {}=1", 'if [ -n "$A" ]; then export {}=1; fi'])
def test_a_variable_of_the_old_scheduler_is_left_out_for_nothing_sets_it(name: str, line: str) -> None:
    ported = port(HEAD + line.format(name) + "\nsrun ./app\n")
    what, why = fate(ported, HEAD.count("\n") + 1)
    assert (what, "the commands of the other machine's scheduler read it" in why) == ("left", True)


def test_a_loop_is_left_out_because_it_is_one() -> None:
    above = HEAD.count("\n")
    own_line = port(HEAD + "for i in 1 2; do\nsrun ./app\ndone\n")
    what, why = fate(own_line, above + 1)
    assert (what, why.startswith("undecided: a loop")) == ("left", True)
    (changed,) = [
        one
        for one in port(HEAD + "for i in 1 2; do srun ./app; done\n").report.changed
        if one.line == above + 1
    ]
    assert "command: ./app" in changed.to
    assert "left out: a loop" in changed.why
    assert "left out: undecided" not in changed.why


def test_variables_of_the_program_go_into_env_and_those_of_the_machine_do_not() -> None:
    body = """\
export LR=0.1 WANDB_MODE=offline
ROOT=/data
export DATA=$ROOT/mnist
export NCCL_SOCKET_IFNAME=hsn0 NCCL_DEBUG=INFO
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID
export API_TOKEN=abc
export OUT="$HOME/run-$SLURM_JOB_ID"
export STAMP=$(date +%s)
srun python train.py
"""
    ported = port(HEAD + body)
    assert ported.settings["env"] == {
        "LR": "0.1",
        "WANDB_MODE": "offline",
        "DATA": "/data/mnist",
        "NCCL_DEBUG": "INFO",
    }
    assert ported.settings["command"] == (
        "bash",
        "-c",
        'export OUT="$HOME/run-$HPCLAUNCH_JOB_ID"\nexec python train.py',
    )
    assert fate(ported, 7) == ("kept", "")
    assert fate(ported, 11)[0] == "changed"
    assert fate(ported, 13) == (
        "left",
        "API_TOKEN looks like a secret: export it in the shell that submits, job files are no place for it",
    )
    assert fate(ported, 15)[1].startswith("undecided: the value of STAMP")
    assert any(text == "env DATA: /data/mnist has to be a path on polaris" for text in ported.to_do)


def test_a_value_that_only_the_run_knows_is_filled_in_by_the_user() -> None:
    ported = port(HEAD + 'RUN=$(cat state | tail -n 1)\nsrun python train.py --run "$RUN" $EXTRA "$1"\n')
    assert ported.settings["env"] == {
        "RUN": "FILL_IN_RUN",
        "EXTRA": "FILL_IN_EXTRA",
        "FILL_IN_WORD": "FILL_IN_WORD",
    }
    assert ported.settings["command"][2] == 'exec python train.py --run "${RUN}" ${EXTRA} "${FILL_IN_WORD}"'
    assert fate(ported, 7)[1] == "env RUN=FILL_IN_RUN"


@in_one_test(
    "line, command, ranks",
    [
        ("srun torchrun --nnodes 2 --nproc_per_node=8 --rdzv_id=$H:1 a.py -x 1", "python a.py -x 1", 16),
        ("srun python -m torch.distributed.run --nproc-per-node 4 -m pkg.train", "python -m pkg.train", 8),
        ("srun accelerate launch --num_processes 16 --multi_gpu train.py", "python train.py", 16),
        ("horovodrun -np 16 python train.py", "python train.py", 16),
        ("srun --ntasks=4 --ntasks-per-node=2 -c 7 ./app a b", "./app a b", 4),
        ("mpirun -np 8 -npernode 4 -x PATH -x A=1 --mca pml ob1 ./app", "./app", 8),
        ("mpirun -c 8 ./app -c 3", "./app -c 3", 8),
        ("mpirun -C np 8 --bind-to core ./vasp", "./vasp", 8),
        ("N=8; mpirun -C np $N ./vasp", "./vasp", 8),
        ("time srun -n $((SLURM_NNODES * 8)) ./app", "./app", 16),
        ("aprun -n 8 -N 4 -d 16 -cc depth -e A=b python train.py --lr 1", "python train.py --lr 1", 8),
        ("jsrun -n 12 -r 6 -a 1 -g 1 -c 7 -b packed:7 --smpiargs=\"-gpu\" python a.py", "python a.py", 12),
        ("jsrun -n2 -r1 -a6 -c42 -g6 python train.py", "python train.py", 12),
    ],
)  # fmt: skip
def test_launchers(line: str, command: str, ranks: int) -> None:
    found = settings(HEAD + line + "\n")
    assert (" ".join(found["command"]), found["nodes"] * found["tasks_per_node"]) == (command, ranks)


@in_one_test(
    "words, image, binds",
    [
        ("shifter --image=nersc/pytorch:25.6 -E -V /data:/in", "docker://nersc/pytorch:25.6", ["/data:/in"]),
        ("shifter -i docker:nersc/pytorch:1 --module=gpu", "docker://nersc/pytorch:1", []),
        ("podman-hpc run --rm --gpu -v /data:/in me/it:1", "docker://me/it:1", ["/data:/in"]),
        ("podman run -it --volume=/data:/in localhost/it:1", "docker://localhost/it:1", ["/data:/in"]),
        ("docker run --rm -v /data:/in nvcr.io/nvidia/pytorch:25.06-py3", "docker://nvcr.io/nvidia/pytorch:25.06-py3",
         ["/data:/in"]),
        ("--container-image=nvcr.io#nvidia/pytorch:25.06-py3 --container-mounts=/data:/in:ro,/usr/lib:/u",
         "docker://nvcr.io/nvidia/pytorch:25.06-py3", ["/data:/in"]),
        ("--container-image /work/a.sqsh --container-mounts /data", "/work/a.sqsh", ["/data"]),
    ],
)  # fmt: skip
def test_other_runtimes_are_read_by_their_own_words(words: str, image: str, binds: list[str]) -> None:
    ported = port(f"{HEAD}srun {words} python train.py --lr 0.1\n", to="olivia")
    assert ported.settings["command"] == ("python", "train.py", "--lr", "0.1")
    assert ported.settings["container"] == image
    assert ported.settings.get("container_bind", ()) == tuple(binds)
    assert any(image in text for text in ported.to_do)
    assert ("bind /usr/lib:/u: olivia has its own" in str(ported.report.changed)) == ("/usr/lib" in words)


def test_shifter_without_an_image_takes_that_of_the_header() -> None:
    head = HEAD.rstrip("\n") + "\n#SBATCH --image=nersc/pytorch:25.06.01\n"
    found = settings(head + "srun shifter python train.py\n")
    assert (found["command"], found["container"]) == (
        ("python", "train.py"),
        "docker://nersc/pytorch:25.06.01",
    )


def test_an_image_that_only_the_run_knows_is_to_be_filled_in() -> None:
    found = port(HEAD + "srun shifter --image=$(cat image) python train.py\n", to="olivia")
    assert found.settings["container"] == "FILL_IN_IMAGE.sif"
    said = "container: FILL_IN_IMAGE.sif: the script's image is known at run time only: name one that is on"
    assert f"{said} olivia, built for its processors (aarch64) and GPUs" in found.to_do
    assert "FILL_IN_IMAGE" not in str([text for text in found.to_do if said not in text])
    found = port(HEAD + "srun singularity run my.sif --all\n", to="isambard-ai")
    said = "container: my.sif has to be on isambard-ai, built for its processors (aarch64) and GPUs"
    assert said in found.to_do
    assert "aarch64" not in str(port(HEAD + "srun singularity run my.sif --all\n", to="polaris").to_do)


def test_a_container_runs_with_the_binds_of_the_target() -> None:
    body = (
        "IMG=/scratch/img.sif\n"
        "srun singularity exec --nv -B /opt/cray,/data:/data -B $PWD --cleanenv $IMG \\\n"
        "  python train.py --lr 0.1\n"
    )
    ported = port(HEAD + body, to="olivia")
    found = ported.settings
    assert found["container"] == "/scratch/img.sif"
    assert found["container_bind"] == ("/data:/data",)
    assert found["command"] == ("python", "train.py", "--lr", "0.1")
    _, script = rendered(ported)
    assert "apptainer exec --nv" in script
    assert "left out of the container's options: --cleanenv" in str(ported.report.changed)


def test_array_dependency_and_mail_are_said_as_the_target_says_them() -> None:
    head = HEAD + (
        "#SBATCH --array=0-9\n#SBATCH --dependency=afterany:12:13\n#SBATCH --mail-type=END,FAIL\n"
        "#SBATCH --mail-user=me@uni.no\n"
    )
    ported = port(head + 'srun ./app --index "$SLURM_ARRAY_TASK_ID"\n')
    _, script = rendered(ported)
    for line in ("#PBS -J 0-9", "#PBS -W depend=afterany:12:13", "#PBS -m ea", "#PBS -M me@uni.no"):
        assert f"\n{line}\n" in script
    assert "$HPCLAUNCH_ARRAY_INDEX" in ported.settings["command"][2]
    assert any(text.startswith("after: 12, 13: replace the ids") for text in ported.to_do)


def test_an_array_that_the_target_cannot_say_is_left_to_the_user() -> None:
    ported = port(HEAD + "#SBATCH --array=1,5,9\nsrun ./app\n")
    assert "array" not in ported.settings
    assert fate(ported, 7)[1].startswith("undecided: ")


def test_of_several_launches_the_largest_is_taken_and_the_others_are_listed() -> None:
    ported = port(HEAD + "srun -n 1 ./prepare\nsrun hostname\nsrun ./train\nsrun ./train --again\n")
    assert ported.settings["command"] == ("./train",)
    assert fate(ported, 7)[1].startswith("undecided: a job of hpclaunch has one launch, here that of line 9:")
    assert fate(ported, 8)[1].startswith("it prints information only")


def test_options_in_an_array_or_a_variable_are_words_of_the_command() -> None:
    body = 'ARGS=(\n  --lr 0.1  # rate\n  --name "a b"\n)\nMORE="--x 1 --y"\n'
    body += 'srun python train.py "${ARGS[@]}" $MORE\n'
    assert settings(HEAD + body)["command"] == (
        *("python", "train.py", "--lr", "0.1", "--name", "a b", "--x", "1", "--y"),
    )


def test_the_continued_lines_of_a_launch_are_judged_by_their_own_words() -> None:
    body = "srun --cpu-bind=mask_cpu:0xfe \\\n  python train.py \\\n  --out $SLURM_NTASKS \\\n"
    body += "  --lr 1 > log 2>&1\n"
    ported = port(HEAD + body)
    assert fate(ported, 8) == ("kept", "")
    assert fate(ported, 9) == ("changed", "unchanged; 16")
    assert "the binding of polaris" in fate(ported, 7)[1]


def test_the_same_machine_keeps_queue_account_modules_and_network() -> None:
    body = "module load LUMI/24.03 partition/G\nmodule load rocm\nexport NCCL_NET_GDR_LEVEL=PHB\nsrun ./app\n"
    ported = port(HEAD + body, to="lumi-g")
    found = ported.settings
    assert (found["account"], found["queue"]) == ("project_465000001", "standard-g")
    assert (found["module"], found["env"]) == (("rocm",), {"NCCL_NET_GDR_LEVEL": "PHB"})
    assert [fate(ported, line)[0] for line in (2, 3, 6, 7, 8, 9)] == ["kept"] * 6


def test_directives_that_are_not_read_are_listed() -> None:
    text = "#!/bin/bash\n#SBATCH -N 1\n#PBS -q debug\necho x\n#SBATCH -p late\nsrun ./app\n"
    ported = port(text, source=None)
    assert fate(ported, 3)[1] == "a directive of qsub, which another scheduler reads"
    assert fate(ported, 5)[1] == "sbatch reads no directives after the first command"


def test_an_indented_line_that_begins_like_a_directive_of_pbs_is_listed() -> None:
    text = "#!/bin/bash\n  #PBS -l select=1\n #PBS%x -l walltime=1:00:00\n #SBATCH -N 2\nmpiexec ./app\n"
    assert fate(port(text, source=None), 3)[0] == "left"


def test_the_lines_of_a_script_that_is_written_and_started_are_judged_too() -> None:
    body = """\
WD=/project/x
cat > $WD/run.sh << EOF
#!/bin/bash
# the ranks
export LR=0.1 NCCL_NET_GDR_LEVEL=SYS
source /opt/conda/bin/activate tf
python -u \\${APP:-train.py} --rank \\$SLURM_PROCID --dir $WD
EOF
srun --cpu-bind=map_cpu:1 singularity exec -B $WD:$PWD img.sif $WD/run.sh 2>/dev/null
"""
    ported = port(HEAD + body)
    assert ported.settings["command"] == (
        "bash",
        "-c",
        'exec python -u "${APP:-train.py}" --rank "${PALS_RANKID:-$PMI_RANK}" --dir /project/x',
    )
    assert ported.settings["container_bind"] == ("/project/x:$PWD",)
    assert ported.settings["env"] == {"LR": "0.1"}
    assert fate(ported, 8) == ("changed", "its last program is the command")
    assert fate(ported, 10)[1] == "a comment in the file that is written"
    assert fate(ported, 11) == ("changed", "unchanged; NCCL_NET_GDR_LEVEL=PHB")
    assert fate(ported, 12)[1].startswith("undecided: source /opt/conda/bin/activate tf sets up the shell")
    assert fate(ported, 13)[1].startswith("command: bash -c exec python")


def test_a_written_script_that_only_the_run_knows_is_left_to_the_user() -> None:
    body = "X=$(mktemp)\ncat > run.sh <<EOF\npython $X\nEOF\nsrun bash run.sh\n"
    ported = port(HEAD + body)
    assert ported.settings["command"] == ("bash", "run.sh")
    assert fate(ported, 9)[1].startswith("undecided: it writes a file when the job starts")


def test_options_of_the_launcher_in_variables_are_options() -> None:
    body = """\
BIND="list:1:2:3:4"
ARGS=" \\
  --wait=60 \\
  --jobid $SLURM_JOB_ID"
srun $ARGS --cpu-bind $BIND bash -c "RANK=\\$SLURM_PROCID NODE=\\$SLURM_NODEID exec python train.py"
"""
    ported = port(HEAD + body)
    assert ported.settings["command"] == (
        *("bash", "-c", "RANK=${PALS_RANKID:-$PMI_RANK} NODE=$SLURM_NODEID exec python train.py"),
    )
    assert "command: line 11 reads $SLURM_NODEID, which jobs on polaris do not have" in ported.to_do


def test_a_placeholder_of_a_sample_is_not_a_file() -> None:
    ported = port(HEAD + "srun python train.py <options>\n")
    assert ported.settings["command"][:2] == ("python", "train.py")
    assert any("<options>" in text and "is a placeholder" in text for text in ported.to_do)


def test_secrets_among_the_arguments_are_not_written() -> None:
    ported = port(HEAD + "srun python train.py --api-key 0123456789abcdef --lr 1\n")
    assert ported.settings["command"][2] == 'exec python train.py --api-key "$API_KEY" --lr 1'
    assert "0123456789abcdef" not in ported.job_file
    assert any(text.startswith("command: the value of --api-key is a secret") for text in ported.to_do)


def test_a_launcher_in_the_text_of_a_shell_is_taken_off_too() -> None:
    body = (
        "export L=\"python -m torch.distributed.run --nproc_per_node 8\"\nsrun bash -c '$L train.py --x 1'\n"
    )
    found = settings(HEAD.replace("per-node=8\n#SBATCH --g", "per-node=1\n#SBATCH --g") + body)
    assert (found["command"], found["nodes"] * found["tasks_per_node"]) == (
        ("python", "train.py", "--x", "1"),
        16,
    )


ONE_PER_NODE = HEAD.replace("per-node=8\n#SBATCH --g", "per-node=1\n#SBATCH --g")


def test_the_program_of_a_text_of_several_commands_is_the_command() -> None:
    ported = port(HEAD + "srun bash -c 'echo start; python train.py --lr 1'\n")
    assert ported.settings["command"] == ("python", "train.py", "--lr", "1")


def test_a_variable_of_several_values_does_not_hide_the_program() -> None:
    """As in NERSC's tutorials: a profiler that an option switches on."""
    body = """\
PROFILE_CMD=""
if [ -n "$P" ]; then PROFILE_CMD="nsys profile"; fi
srun shifter --image=a/b:1 bash -c "
  source export_vars.sh
  ${PROFILE_CMD} python train.py --lr 1
"
"""
    ported = port(HEAD + body, to="olivia")
    assert ported.settings["command"][2] == "exec ${PROFILE_CMD} python train.py --lr 1"
    assert ported.settings["container"] == "docker://a/b:1"
    assert any(text.startswith("env PROFILE_CMD: ") for text in ported.to_do)
    assert fate(ported, 10)[1].startswith("undecided: export_vars.sh may set anything")


@pytest.mark.parametrize(
    "launch",
    [
        "srun bash -c 'torchrun \\\n --nnodes=$SLURM_NNODES --nproc_per_node=8 \\\n train.py --lr 1'",
        'L="python -m torch.distributed.run \\\n --nproc_per_node 8"\nCMD="train.py --lr 1"\n'
        'srun bash -c "hostname; $L --node_rank \\$SLURM_PROCID $CMD"',
    ],
)
def test_the_workers_of_a_launcher_in_a_text_are_ranks(launch: str) -> None:
    found = settings(f"{ONE_PER_NODE}{launch}\n")
    assert found["command"] == ("python", "train.py", "--lr", "1")
    assert (found["nodes"], found["tasks_per_node"], found["gpus_per_task"]) == (4, 4, 1)


def test_a_text_of_several_programs_is_kept_and_its_launcher_named() -> None:
    ported = port(f"{ONE_PER_NODE}srun bash -c 'python prepare.py; torchrun --nproc_per_node=8 train.py'\n")
    text = "python prepare.py; torchrun --nproc_per_node=4 train.py"
    assert ported.settings["command"] == ("bash", "-c", text)
    assert (ported.settings["nodes"], ported.settings["tasks_per_node"]) == (4, 4)
    assert "command: line 7: torchrun stays, with polaris's workers per node" in str(ported.to_do)


def test_torchrun_in_a_shell_in_a_container_is_taken_off() -> None:
    """Its 8 workers on one node become 8 ranks on two nodes of 4 GPUs."""
    line = (
        "srun -n 1 singularity run -B $PWD a.sif bash -c 'torchrun --standalone --nproc_per_node=8 train.py'"
    )
    found = settings(HEAD.replace("-N 2", "-N 1") + line + "\n")
    assert (found["command"], found["container"]) == (("python", "train.py"), "a.sif")
    assert (found["nodes"], found["tasks_per_node"]) == (2, 4)


def test_a_script_without_a_launch_keeps_its_nodes() -> None:
    ported = port(HEAD + "export A=1\n")
    assert (ported.settings["nodes"], ported.settings["command"]) == (4, ("FILL_IN_PROGRAM",))


def test_variables_that_hold_a_launch_are_not_variables_of_the_program() -> None:
    body = """\
MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export UNUSED="python -m torch.distributed.launch --nproc_per_node 4 --master_addr $MASTER_ADDR "
export CMD="deepspeed --num_gpus 8 train.py --lr 1"
srun bash -c '$CMD'
"""
    text = HEAD.replace("per-node=8\n#SBATCH --g", "per-node=1\n#SBATCH --g") + body
    ported = port(text, to="lumi-g")
    assert ported.settings["command"] == ("python", "train.py", "--lr", "1")
    assert ported.settings["tasks_per_node"] == 8
    assert "env" not in ported.settings
    assert fate(ported, 8)[1].startswith("it holds the words of torchrun")
    assert fate(ported, 9) == ("changed", "its program stands in the command")
    assert not [one for one in find_faults(rendered(ported)[1], shipped("lumi-g")) if one.severity == "error"]


def test_a_program_of_a_very_long_name_renders() -> None:
    """No file system takes the name, so the file is missing like any other."""
    assert "a" * 300 in port(HEAD + f"srun ./{'a' * 300}\n").job_file


SLURM = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-node=4 -t 10\n"


def test_events_of_mail_that_a_job_file_cannot_say_are_named() -> None:
    mail = "#SBATCH --mail-type=END,TIME_LIMIT_80\n"
    ported = port(f"{SLURM}{mail}srun ./app\n", source=None, to="leonardo")
    (line,) = [one for one in ported.report.changed if one.line == 3]
    assert "TIME_LIMIT_80" in line.why
    assert line.to == "directives: --mail-type=END"
    whole = port(f"{SLURM}#SBATCH --mail-type=END,FAIL\nsrun ./app\n", source=None, to="leonardo")
    assert fate(whole, 3)[0] == "kept"


def test_mail_of_cobalt_is_carried() -> None:
    text = "#!/bin/bash\n#COBALT -n 2 -t 60 -q full-node -M me@example.org\nmpirun -np 16 -npernode 8 ./app\n"
    ported = port(text, source="thetagpu", to="leonardo")
    assert ported.settings["directives"] == ("--mail-type=BEGIN,END", "--mail-user=me@example.org")
    # A node of ThetaGPU comes with its 8 GPUs.
    sizes = {key: ported.settings[key] for key in ("nodes", "tasks_per_node", "gpus_per_task")}
    assert sizes == {"nodes": 4, "tasks_per_node": 4, "gpus_per_task": 1}


def test_slots_per_host_of_lsf_give_the_nodes_and_their_gpus() -> None:
    head = '#!/bin/bash\n#BSUB -n 32\n#BSUB -R "span[ptile=16]"\n#BSUB -gpu "num=4"\n#BSUB -W 10\n'
    ported = port(head + "mpirun -np 8 ./app\n", source=None, to="leonardo")
    assert (ported.settings["nodes"], ported.settings["tasks_per_node"]) == (2, 4)
    assert ported.settings["gpus_per_task"] == 1


@in_one_test(
    "head, launch, sizes",
    [
        ("#PBS -l nodes=2:ppn=8:gpus=4,walltime=10:00", "mpirun ./app", (16, None)),
        ("#PBS -l nodes=node7:ppn=8:gpus=2:exclusive_process", "python a.py", (1, 2)),
        ("#PBS -l select=2:ncpus=8:mpiprocs=8", "mpirun -np $(wc -l < $PBS_NODEFILE) ./app", (16, None)),
        ("#PBS -l select=2:ncpus=8", "mpirun -np $(wc -l < $PBS_NODEFILE) ./app", (2, None)),
        ("#PBS -l nodes=2:ppn=4", "mpirun -np $(sort -u $PBS_NODEFILE | wc -l) ./app", (2, None)),
        ("#PBS -l nodes=2:ppn=4", "aprun ./app", (1, None)),
        ('#BSUB -n 1\n#BSUB -R "rusage[ngpus_excl_p=2]"', "./app", (1, 2)),
        ("#$ -l gpu=2", "./app", (1, 2)),
        ("#flux: -N 2\n#flux: -n 4\n#flux: -g 2", "flux run -N2 -n4 -g2 --queue=p ./app", (4, 2)),
        ("#flux: -N 2", "flux mini run -n $(flux resource list -no {nnodes}) -g 1 ./app", (2, 1)),
        ("#BSUB -nnodes 1", "jsrun -X 1 -n 4 -g 1 ./app", (4, 1)),
        ("#SBATCH --gres=gpu:2", "srun ./app", (1, 2)),
        ("#SBATCH -N 2 --gres=gpu:4", "srun torchrun a.py", (2, 4)),
    ],
)
def test_sizes_as_each_scheduler_says_them(head: str, launch: str, sizes: tuple[int, int | None]) -> None:
    """The ranks, and the GPUs of each."""
    found = settings(f"#!/bin/bash\n{head}\n{launch}\n", source=None, to="lumi-g")
    assert (found["nodes"] * found["tasks_per_node"], found.get("gpus_per_task")) == sizes


@in_one_test(
    "body, command",
    [
        ("singularity pull a.sif docker://a\nsingularity exec a.sif ./app", ("./app",)),
        ("srun hostname\nstart --hosts h -- python a.py", ("start", "--hosts", "h", "--", "python", "a.py")),
        ("srun hostname\n./app", ("./app",)),
        ("mpirun_rsh -np 8 -hostfile h ./app", ("./app",)),
        ("mpiexec --version\n./app", ("./app",)),
    ],
)
def test_what_starts_no_program_is_not_the_launch(body: str, command: tuple[str, ...]) -> None:
    assert settings(f"{HEAD}{body}\n", to="olivia")["command"] == command


def test_gpus_of_grid_engine_are_left_to_the_user() -> None:
    ported = port("#!/bin/bash\n#$ -pe mpi 8\n#$ -l gpu=4\nmpirun ./app\n", source=None, to="leonardo")
    assert fate(ported, 3) == ("left", "undecided: -l gpu=4: how many per node is not known")
    assert any(text.startswith("GPUs: -l gpu=4") for text in ported.to_do)


def test_directives_of_a_scheduler_that_is_not_read_are_listed() -> None:
    ported = port("#!/bin/bash\n#OAR -l nodes=2\nmpirun ./app\n", source=None)
    assert fate(ported, 2) == ("left", "undecided: a directive of OAR, which is not read")
    assert any("OAR" in text for text in ported.to_do)


def test_a_heterogeneous_job_is_its_first_component() -> None:
    text = f"{SLURM}#SBATCH hetjob\n#SBATCH -N 1 -n 1\nsrun --het-group=0 ./a x : --het-group=1 ./b\n"
    ported = port(text, source=None, to="leonardo")
    assert (ported.settings["nodes"], ported.settings["command"]) == (2, ("./a", "x"))
    assert {fate(ported, line)[0] for line in (3, 4)} == {"left"}
    assert any(text.startswith("hetjob") for text in ported.to_do)
    assert any("several programs" in text for text in ported.to_do)


def test_conditions_and_files_are_left_to_the_user_with_the_reason() -> None:
    text = f"{SLURM}if [ -n $X ]; then\nsrun ./a\nfi\ncp -r runs /store\nmkdir out\necho done\n"
    ported = port(text, source=None, to="leonardo")
    assert "a condition" in fate(ported, 3)[1]
    assert any("in any case" in text for text in ported.to_do)
    assert {fate(ported, line)[1].partition(":")[0] for line in (6, 7)} == {"undecided"}
    assert "prints" in fate(ported, 8)[1]


def test_a_value_of_the_run_that_was_not_quoted_stays_several_words() -> None:
    text = f'{SLURM}LR=$(python lr.py)\nARGS="--lr $LR --batch 32"\nsrun ./a $ARGS "$ARGS"\n'
    ported = port(text, source=None, to="leonardo")
    text = 'exec ./a --lr ${LR} --batch 32 "--lr ${LR} --batch 32"'
    assert ported.settings["command"] == ("bash", "-c", text)
    assert ported.settings["env"] == {"LR": "FILL_IN_LR"}
    assert fate(ported, 3) == ("changed", "env LR=FILL_IN_LR")


def test_the_line_of_torchrun_says_what_becomes_of_its_options() -> None:
    text = (
        f"{SLURM}srun apptainer exec x.sif \\\n torchrun --nproc_per_node=4 --rdzv_endpoint=a:1 \\\n t.py\n"
    )
    ported = port(text, source=None, to="leonardo")
    assert fate(ported, 4)[1] == "the ranks, and where they find each other, as hpclaunch's script sets them"


def test_exported_names_of_a_directive_stand_in_env() -> None:
    text = "#!/bin/bash\n#PBS -l select=1:ncpus=4\n#PBS -v MODE=fast,NCCL_NET=IB\nmpiexec -n 1 ./a\n"
    ported = port(text, source=None, to="leonardo")
    assert fate(ported, 3)[1].startswith("env: MODE; NCCL_NET is left out")
