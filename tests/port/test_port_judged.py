"""What a port says about its own result: each point in which the job may differ is a TO DO."""

from __future__ import annotations

import re
from typing import get_args

import msgspec
import pytest

from benchmarks.port import FACTS, TARGETS, Half, read_facts
from hpclaunch.port.port_script import Ported, port_script
from hpclaunch.port.port_text import rendered_port
from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import check_report
from tests.profiles import shipped

LUMI = "#!/bin/bash\n#SBATCH -A project_465000001 -p standard-g -N 2\n#SBATCH --ntasks-per-node=8\n"
LUMI += "#SBATCH --gpus-per-node=8 -t 0:30:00\n"
POLARIS = "#!/bin/bash\n#PBS -A Proj\n#PBS -l select=2:system=polaris\n#PBS -q debug\n"


def port(text: str, source: str | None, to: str) -> Ported:
    target = shipped(to)
    ported, _ = rendered_port(port_script(text, shipped(source) if source else None, target), target)
    check_report(text, ported)
    return ported


def to_do(text: str, source: str | None = "lumi-g", to: str = "polaris") -> str:
    return "\n".join(port(text, source, to).to_do)


@in_one_test("wrapper", ["./set_affinity_gpu_polaris.sh", "gpu_tile_compact.sh", "./select_gpu"])
def test_a_wrapper_that_chooses_gpus_is_taken_off_and_named(wrapper: str) -> None:
    ported = port(f"{POLARIS}mpiexec -n 8 --ppn 4 {wrapper} python train.py --lr 1\n", "polaris", "olivia")
    assert ported.settings["command"] == ("python", "train.py", "--lr", "1")
    assert any(text.startswith(f"command: {wrapper} is left out") for text in ported.to_do)


def test_a_program_that_shows_affinity_is_no_wrapper() -> None:
    assert port(f"{POLARIS}mpiexec -n 8 --ppn 4 ./hello_affinity 3\n", "polaris", "olivia").settings[
        "command"
    ] == ("./hello_affinity", "3")


def test_a_script_that_is_started_is_named_with_its_line() -> None:
    said = to_do(f"{LUMI}srun ./wrap.sh python train.py\n")
    assert "command: ./wrap.sh of line 5 is a script that port does not read" in said


def test_ranks_that_share_gpus_are_named_where_the_machine_is_not_known() -> None:
    """A script for ThetaGPU, 8 GPUs per node, without --from."""
    text = "#!/bin/bash\n#COBALT -n 2 -t 60 -q full-node\nmpirun -np 16 -npernode 8 python train.py\n"
    said = to_do(text, None)
    assert "GPUs: 8 ranks share the 4 GPUs of a node here" in said
    assert "--from names its machine" in said
    assert "GPUs:" not in to_do(text, "thetagpu")


def test_another_number_of_gpus_is_something_to_do() -> None:
    text = LUMI.replace("ntasks-per-node=8", "ntasks-per-node=1") + "srun python train.py\n"
    assert "GPUs: 2 ranks on 2 nodes with 16 GPUs = 2 nodes x 1 rank with 8 GPUs" in to_do(text)


def test_a_launch_on_fewer_nodes_than_requested_is_named() -> None:
    text = LUMI + "for node in a b; do\nsrun -N 1 -n 8 python train.py &\ndone\n"
    assert "nodes: the script requests 2, line 6 starts ranks on 1" in to_do(text)


def test_ranks_that_only_the_run_knows_are_named() -> None:
    said = to_do(LUMI + "srun -n $(cat ranks) python train.py\n")
    assert "ranks: the number of ranks is known at run time only: one per GPU here" in said


@in_one_test("words", ['"$@"', "$*", '"${@:2}"'])
def test_arguments_of_the_script_are_named(words: str) -> None:
    ported = port(f"{LUMI}srun python train.py --lr 1 {words}\n", "lumi-g", "polaris")
    assert ported.settings["command"] == ("python", "train.py", "--lr", "1")
    assert any("stands for the arguments of the script" in text for text in ported.to_do)


def test_an_undecided_line_is_something_to_do_once_for_each_reason() -> None:
    said = to_do(f"{LUMI}source env.sh\ncp -r a b\ncp -r c d\n./prepare\nsrun python train.py\n")
    assert "line 5: env.sh may set anything" in said
    assert "lines 6-8: a job file has no place for it" in said


def test_the_wrapper_of_csc_leaves_its_image_to_the_user() -> None:
    ported = port(f"{LUMI}srun singularity_wrapper exec python train.py\n", "lumi-g", "olivia")
    assert ported.settings["command"] == ("python", "train.py")
    assert any(text.startswith("container: singularity_wrapper") for text in ported.to_do)


def test_ldd_in_a_container_is_not_the_program() -> None:
    body = "srun singularity exec a.sif ldd ./app\nsrun singularity exec a.sif ./app --n 1\n"
    assert port(LUMI + body, "lumi-g", "olivia").settings["command"] == ("./app", "--n", "1")


def test_a_default_in_quotes_and_a_folder_named_as_a_launcher_are_values() -> None:
    body = "export TORCH_EXTENSIONS_DIR=$PWD/deepspeed\n"
    body += 'srun python train.py ${MODULE:-"llama3"} $(basename a/b)\n'
    command = port(LUMI + body, "lumi-g", "olivia").settings["command"][2]
    assert 'export TORCH_EXTENSIONS_DIR="$PWD/deepspeed"' in command
    assert command.endswith('exec python train.py "${MODULE:-llama3}" b')


def test_binds_without_a_container_and_an_empty_word_do_not_end_the_port() -> None:
    said = to_do(f"{LUMI}srun --container-mounts=/data:/data '' python train.py\n", to="olivia")
    assert "container_bind: /data:/data: the job has no container" in said


def test_what_lint_finds_in_the_new_script_is_something_to_do() -> None:
    olivia = shipped("olivia")
    ported = port_script(f"{LUMI}srun python train.py\n", shipped("lumi-g"), olivia)
    assert not any("of the new script" in text for text in rendered_port(ported, olivia)[0].to_do)
    changed = ported.settings | {"directives": ("--mail-type=FAILED",)}
    said = rendered_port(msgspec.structs.replace(ported, settings=changed), olivia)[0]
    assert "of the new script: --mail-type=FAILED" in str(said.to_do)
    assert "# TO DO: line " in said.job_file


def test_a_placeholder_is_no_queue_of_a_machine_and_the_plan_of_software_says_for_what() -> None:
    text = "#!/bin/bash\n#SBATCH -p <to-be-specified> -N 1 -n 4 --gpus-per-node=4\n"
    text += "module load Horovod\nsrun ./a\n"
    ported = port(text, None, "olivia")
    (line,) = [one for one in ported.report.changed if one.line == 2]
    assert "<to-be-specified> is a placeholder" in line.why
    (to_do,) = [one for one in ported.to_do if one.startswith("software:")]
    assert "a job of olivia that needs it gets" in to_do
    assert "gave" in to_do


def test_a_reason_is_given_once() -> None:
    text = "#!/bin/bash\n#SBATCH -N 2 --gpus-per-node=8 --ntasks-per-node=1\nsrun torchrun --nnodes=2 "
    text += "--nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=$(hostname):29500 train.py\n"
    (line,) = [one for one in port(text, "lumi-g", "polaris").report.changed if one.line == 3]
    assert line.why.count("without torchrun: hpclaunch starts one rank for each of its workers") == 1


@in_one_test(
    "site, words, not_said",
    [
        ("polaris", "gets torch 2.8.0, tensorflow 2.21.0", "software plan"),
        ("jupiter", "a job of jupiter that needs it gets torch 2.9.1", "software plan"),
        ("frontier", "hpclaunch software plan --site frontier --for NAME", "that needs it gets"),
    ],
)
def test_what_replaces_modules_is_what_the_other_machine_has(site: str, words: str, not_said: str) -> None:
    text = "#!/bin/bash\n#SBATCH -N 1\nmodule load PyTorch/2.3\nsrun python train.py\n"
    (to_do,) = [one for one in port(text, None, site).to_do if one.startswith("software:")]
    assert words in to_do
    assert not_said not in to_do
    assert "PyTorch/2.3" in to_do


def test_the_time_to_begin_stands_in_the_job_file() -> None:
    text = LUMI + "#SBATCH --begin=2027-01-02T18:00\nsrun python train.py\n"
    assert "begin: " in port(text, "lumi-g", "polaris").job_file


def test_workers_of_one_of_several_nodes_become_those_of_all() -> None:
    text = "#!/bin/bash\n#SBATCH --nodes=1 --gres=gpu:4\ntorchrun --nproc_per_node=4 --nnodes=4 --node_rank=3"
    ported = port(f"{text} --master_addr=10.2.14.191 train.py\n", None, "polaris")
    assert (ported.settings["nodes"], ported.settings["tasks_per_node"]) == (4, 4)
    assert "nodes: line 3 starts the workers of one of 4 nodes" in "\n".join(ported.to_do)


def test_programs_that_show_affinity_side_by_side_are_named() -> None:
    shows = "CUDA_VISIBLE_DEVICES={} mpiexec -n 8 --ppn 8 ./hello_affinity &\n"
    text = POLARIS.replace("select=2", "select=1") + shows.format(0) + shows.format(1) + "wait\n"
    assert "line 6: a job of hpclaunch has one launch, here that of line 5" in to_do(
        text, "polaris", "olivia"
    )


def test_the_gpus_of_a_node_that_a_program_is_told_are_those_of_its_ranks() -> None:
    text = "#!/bin/bash\n#SBATCH -A project_465000001 -p dev-g -N 1 --ntasks-per-node=1 --gpus-per-node=2\n"
    ported = port(f"{text}srun serve --tensor-parallel-size $SLURM_GPUS_ON_NODE\n", "lumi-g", "lumi-g")
    assert ported.settings["command"] == ("serve", "--tensor-parallel-size", "2")
    assert ported.settings["gpus_per_task"] == 2


def test_a_program_that_a_shell_reads_from_a_here_document_is_the_command() -> None:
    text = "export PYTHONPATH=$PYTHONPATH:/home/me/packages\npython train.py --lr 1\n"
    ported = port(f"{LUMI}singularity exec image.sif bash << EOF\n{text}EOF\n", "lumi-g", "polaris")
    assert ported.settings["command"][2].endswith("\nexec python train.py --lr 1")
    assert ported.settings["container"] == "image.sif"
    assert "env PYTHONPATH: /home/me/packages has to be a path on polaris" in ported.to_do


def test_several_programs_in_a_here_document_stay_together() -> None:
    ported = port(f"{LUMI}srun bash -s <<'EOF'\n./prepare\n./train\nEOF\n", "lumi-g", "polaris")
    assert ported.settings["command"] == ("bash", "-c", "./prepare\n./train\n")


def test_of_programs_without_a_launcher_the_last_one_is_taken_and_the_others_are_named() -> None:
    ported = port(f"{LUMI}./first\n./second\n", "lumi-g", "polaris")
    assert ported.settings["command"] == ("./second",)
    assert "line 5: a job of hpclaunch has one launch, here the program of line 6" in "\n".join(ported.to_do)


def test_an_environment_of_the_other_machine_is_named_with_its_line() -> None:
    said = to_do(f"{LUMI}source $HERE/setup.sh\nsrun python train.py\n")
    assert "polaris must have what line 5 sets up, source $HERE/setup.sh" in said


@in_one_test(
    "body, said",
    [
        (
            "if [ -n $X ]; then N=4; fi\nsrun -n 8 ./a --lr $N\n",
            "env N: FILL_IN_N: the command needs it (line 5)",
        ),
        ("srun --multi-prog plan.conf\n", "srun's multi-prog has no setting here"),
        ("echo 3 > in.txt\nsrun ./a in.txt\n", "line 5: it writes in.txt when the job starts"),
        ("generate | srun ./a\n", "command: line 5 reads what another command prints"),
        ("srun ./a << EOF\n3\nEOF\n", "command: line 5 gives the program a text as stdin"),
        ("export PATH=/home/me/bin:$PATH\nsrun ./a\n", "line 5: PATH: the software of the other machine"),
        ("srun python a.py --num_nodes 2\n", "command: --num_nodes 2 of line 5 was a size"),
        ("export GPUS_PER_NODE=8\nsrun ./a\n", "env GPUS_PER_NODE: 8 was a size"),
        ("srun ./a --index $SLURM_ARRAY_TASK_ID\n", "array: line 5 reads an index"),
        (
            "srun ./a --rank $SLURM_PROCID\n",
            "command: line 5 gives SLURM_PROCID the value that the script itself",
        ),
        ("srun python a.py --env_rank PMI_RANK\n", "command: line 5 names PMI_RANK, a variable"),
        ("srun .venv/bin/python a.py\n", "command: line 5 starts .venv/bin/python: environments are"),
        ("srun numactl --membind=1 ./a\n", "command: numactl names cores or memory of another machine"),
        ("export CUDA_VISIBLE_DEVICES=0,1\nsrun ./a\n", "lets the program see 2 of a node's GPUs"),
        (
            "srun accelerate launch --mixed_precision bf16 a.py\n",
            "--mixed_precision of accelerate may change",
        ),
        (
            "srun apptainer exec --pwd /x a.sif ./a\n",
            "container: left out of the container's options: --pwd /x",
        ),
        ("srun cp data /tmp\nsrun ./a\n", "line 5: a job of hpclaunch has one launch"),
        ("torchpack dist-run -np 4 python a.py\n", "ranks: torchpack dist-run -np 4 starts python a.py"),
        ("srun nsys profile -o x python a.py\n", "command: nsys profile -o x starts python a.py"),
        ("torchrun --nproc_per_node=$(./n) a.py\n", "ranks: --nproc_per_node of torchrun cannot be read"),
        ("deepspeed --include localhost:0,1 a.py\n", "ranks: --include of deepspeed cannot be read"),
        ("torchrun $ARGS a.py\n", "ranks: options of torchrun cannot be read"),
        ("srun $RUN a.py\n", "ranks: ${RUN} is not known, and may start processes itself"),
        ("srun deepspeed --num_gpus 8 a.py\n", "command: deepspeed gives the program --local_rank"),
        ("export WANDB_API_KEY=x\nsrun ./a\n", "secret: WANDB_API_KEY is left out: export it in the shell"),
        ("srun ./a --rank $SLURM_NODEID\n", "env SLURM_NODEID: FILL_IN_SLURM_NODEID"),
        ("export OMP_NUM_THREADS=2\nsrun ./a -w $SLURM_CPUS_PER_TASK\n", "env SLURM_CPUS_PER_TASK: FILL_IN"),
        ("N=$SLURM_NTASKS\nsrun -n 4 ./a $N\n", "command: SLURM_NTASKS of line 6 was 16, which"),
        (
            "srun bash run.sh --nproc_per_node 4\n",
            "ranks: --nproc_per_node of line 5 start processes",
        ),
        ("srun uv run python a.py\n", "environment: uv run of the command brings a Python environment"),
        ("srun a.out --x ${X:-3}\n", "command: line 5 reads X, which the shell that submits may set"),
        ("srun python a.py --launcher slurm\n", "command: --launcher slurm of line 5 names what starts"),
        ("N=${1:-3}\nsrun ./a --x $N\n", "command: line 5: arguments of the script are read"),
        (
            "srun singularity run a.sif ./a\n",
            "container: singularity run gives these words to the image's own",
        ),
        ("srun /bin/sh -e run.sh\n", "command: run.sh of line 5 is a script that port does not read"),
        ("srun accelerate launch --config_file a.yaml a.py\n", "(--config_file a.yaml)"),
        ("set -- 1 2\nsrun ./a\n", "line 5: it changes the arguments"),
        ("srun ./a --in $HOME/data\n", "command: $HOME/data has to be a path on polaris"),
        ("#SBATCH --chdir=/scratch/x\nsrun ./a\n", "line 5: submit the job in the folder on polaris"),
        ("#SBATCH --input=in.txt\nsrun ./a\n", "line 5: --input=in.txt: the program reads it as stdin"),
        ("#SBATCH --mem=4000G\nsrun ./a\n", "line 5: --mem=4000G: 2000 GiB for the ranks of a node"),
        ("#SBATCH --bb=capacity=1TB\nsrun ./a\n", "line 5: --bb=capacity=1TB: port does not know"),
    ],
)
def test_what_may_mean_something_else_here_is_something_to_do(body: str, said: str) -> None:
    assert said in to_do(LUMI + body)


def test_a_variable_that_the_new_launcher_sets_for_each_rank_is_nothing_to_do() -> None:
    words = "srun python a.py --rank_var SLURM_PROCID --local_var SLURM_LOCALID --step_var SLURM_STEP_ID"
    said = to_do(f"{LUMI}{words}\n", "lumi-g", "olivia")
    assert re.findall(r"names (SLURM_\w+), a variable", said) == ["SLURM_STEP_ID"]


def test_a_job_that_begins_in_the_home_folder_and_one_without_a_time_are_named() -> None:
    said = to_do(f"{POLARIS}mpiexec -n 8 --ppn 4 ./a\n", "polaris", "olivia")
    assert "folder: no line leaves the home folder" in said
    assert "ranks: the number of ranks" in to_do(f"{POLARIS}mpiexec ./a\n", "polaris", "olivia")
    assert "time: the script requests none" in said


def test_ranks_that_leave_most_of_each_node_idle_are_named() -> None:
    """601 is a prime number, so no other number of ranks is the same on each node."""
    said = to_do("#!/bin/bash\n#SBATCH -n 601 -t 10\nsrun ./a\n", None, "lumi-g")
    assert "nodes: 601 ranks = 601 nodes x 1 rank: so few on a node" in said


def test_a_name_before_a_letter_is_in_braces_and_equal_words_stay() -> None:
    text = f"{LUMI}#SBATCH --array=0-3\nI=$SLURM_ARRAY_TASK_ID\nsrun ./a -P 2 2 2 L${{I}}_x\n"
    ported = port(text, "lumi-g", "polaris")
    assert ported.settings["command"][2] == 'exec ./a -P 2 2 2 "L${HPCLAUNCH_ARRAY_INDEX}_x"'


def test_a_program_that_no_launcher_starts_is_one_process_whatever_the_directives_say() -> None:
    text = "#!/bin/bash\n#SBATCH -N 2 -n 16 -t 10\n./threads 3\n"
    ported = port(text, None, "polaris")
    assert (ported.settings["nodes"], ported.settings["tasks_per_node"]) == (1, 1)
    assert "nodes: the script requests 2 and starts 1 rank" in "\n".join(ported.to_do)


def test_a_launcher_in_a_variable_keeps_its_sizes() -> None:
    text = '#!/bin/bash\n#BSUB -nnodes 1\n#BSUB -W 10\nRUN="jsrun -g 1 -a 1 -n 4"\n$RUN ./a --x 1\n'
    found = port(text, None, "lumi-g").settings
    assert (found["nodes"], found["tasks_per_node"], found["gpus_per_task"]) == (1, 4, 1)


@in_one_test(
    "body, command",
    [
        ("env A=b timeout 3600 python a.py", ("env", "A=b", "timeout", "3600", "python", "a.py")),
        ("srun env A=b uv run accelerate launch a.py", ("env", "A=b", "uv", "run", "python", "a.py")),
        ("timeout 10m torchrun --nproc_per_node=8 a.py", ("timeout", "10m", "python", "a.py")),
        ('L="uv run torchrun --nproc_per_node=8"\n$L a.py', ("uv", "run", "python", "a.py")),
        ("time uv run python a.py", ("uv", "run", "python", "a.py")),
        ("srun python $(which torchrun) --nproc_per_node 8 a.py", ("python", "a.py")),
        ("python -m venv env\npython a.py", ("python", "a.py")),
        ("X=4\nwhile [ $1 ]; do X=$2; shift; done\nsrun ./a --x $X", ("./a", "--x", "4")),
    ],
)
def test_what_stands_before_the_program_stays(body: str, command: tuple[str, ...]) -> None:
    assert port(f"{LUMI}{body}\n", "lumi-g", "polaris").settings["command"] == command


def test_more_ranks_than_any_node_has_gpus_and_no_word_about_them_are_no_open_point() -> None:
    text = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=40 -t 10\nsrun ./a\n"
    assert "GPUs:" not in to_do(text, None, "lumi-g")
    assert "GPUs: 40 ranks" in to_do(text.replace("-t 10", "-t 10 -p gpu"), None, "lumi-g")


def test_a_script_of_slurm_without_directives_does_not_begin_at_home() -> None:
    assert "folder:" not in to_do("#!/bin/bash\nmpiexec -n 8 --ppn 4 ./a\n", "polaris", "olivia")


def test_the_facts_of_the_benchmark_are_whole() -> None:
    """They name public scripts without their lines, and the lot leaves enough of them on both sides."""
    facts = read_facts()
    halves = [one.half for one in facts]
    assert min(map(halves.count, get_args(Half))) >= 12
    assert len({one.name for one in facts}) == len(facts)
    assert all(re.fullmatch(r"[0-9a-f]{40}", one.commit) and one.line > 0 for one in facts)
    assert "#SBATCH" not in "".join(file.read_text() for file in FACTS.parent.glob("port_scripts*.yaml"))
    assert len(TARGETS) == 3


def test_a_launcher_started_by_its_path_leaves_the_python_of_its_folder() -> None:
    """The path alone names the environment."""
    for launcher, python in (
        ("/proj/envs/torch/bin/accelerate launch", "/proj/envs/torch/bin/python"),
        ("srun -n 2 ./venv/bin/torchrun --nproc_per_node=8", "./venv/bin/python"),
        (
            "E=/proj/e\nsrun -n 2 $E/bin/python3 -m torch.distributed.run --nproc_per_node=8",
            "/proj/e/bin/python3",
        ),
        ("/usr/bin/torchrun --nproc_per_node=8", "python"),
        ("torchrun --nproc_per_node=8", "python"),
    ):
        ported = port(f"{LUMI}{launcher} train.py --lr 1\n", "lumi-g", "polaris")
        assert ported.settings["command"] == (python, "train.py", "--lr", "1")
    said = to_do(f"{LUMI}/proj/envs/torch/bin/accelerate launch train.py\n")
    assert "command: /proj/envs/torch/bin/python has to be a path on polaris" in said


def test_threads_for_the_old_node_are_left_out_where_the_ranks_of_a_node_are_not_known() -> None:
    text = (
        "#!/bin/bash\n\n#COBALT -n 4 -t 60\naprun -n $((COBALT_JOBSIZE * 4)) -N 4 -e OMP_NUM_THREADS=64 ./a\n"
    )
    ported = port(text, "theta", "polaris")
    assert "env" not in ported.settings
    assert any(text.startswith("env OMP_NUM_THREADS: 64 threads are left out") for text in ported.to_do)


def test_a_ray_cluster_of_the_script_is_hpclaunchs_and_its_driver_the_command() -> None:
    text = LUMI.replace("ntasks-per-node=8", "ntasks-per-node=1")
    text += "nodes=($(scontrol show hostnames $SLURM_JOB_NODELIST))\nexport TRIALS=$((SLURM_NNODES * 4))\n"
    text += (
        'srun -N 1 -n 1 -w ${nodes[0]} ray start --head --node-ip-address="${nodes[0]}i" --block &\nsleep 9\n'
    )
    text += "srun -N 1 -n 1 ray start --address ${nodes[0]}i:6379 --block &\npython3 -u tune.py --samples 2\n"
    ported = port(text, "lumi-g", "polaris")
    settings = ported.settings
    assert settings["command"] == ("python3", "-u", "tune.py", "--samples", "2")
    assert (settings["nodes"], settings["framework"], settings["env"]) == (4, "ray", {"TRIALS": "16"})
    said = "\n".join(ported.to_do)
    assert "framework: ray start is left out: hpclaunch starts a Ray cluster" in said
    assert not any(each in said for each in ("ranks:", "a job that follows", "nodes: the script"))


def test_the_process_of_a_ray_node_has_all_its_cores() -> None:
    text = LUMI.replace("ntasks-per-node=8", "ntasks-per-node=1 -c 96") + "ray start --head\npython a.py\n"
    said = [each for each in port(text, "lumi-g", "polaris").notes if each.startswith("cores")]
    assert len(said) == 1
    assert "32 are its share" in said[0]


def test_the_folder_and_the_search_path_of_a_variable_are_shown() -> None:
    text = f"{POLARIS}PBS_O_WORKDIR=/scratch/me/\ncd ${{PBS_O_WORKDIR}}\nexport MPI_HOME=/opt/openmpi\n"
    said = to_do(text + "export PATH=$MPI_HOME/bin:$PATH\nmpiexec -n 8 --ppn 4 ./a\n", "polaris", "olivia")
    assert "takes the place of ${PBS_O_WORKDIR} (/scratch/me/)" in said
    assert "what it finds there by it: /opt/openmpi/bin:$PATH" in said


def test_each_argument_of_the_script_is_a_value_of_its_own_and_named_once() -> None:
    ported = port(f"{LUMI}srun ./a --config $1 --hpo $2\n", "lumi-g", "polaris")
    assert ported.settings["command"][2] == "exec ./a --config ${FILL_IN_WORD} --hpo ${FILL_IN_WORD_2}"
    assert {"FILL_IN_WORD", "FILL_IN_WORD_2"} == set(ported.settings["env"])
    said = "\n".join(ported.to_do)
    assert "$2 stands for the arguments" in said
    assert "arguments of the script are read" not in said


def test_variables_of_a_container_and_a_table_of_processes_are_nothing_to_do() -> None:
    said = to_do(f"{LUMI}export DATA=x\nsrun --container-env=DATA --container-image=a.sif ./a\n")
    assert "container-env" not in said
    assert "proctable" not in to_do(f"{POLARIS}mpirun -output-proctable -n 8 ./a\n", "polaris", "olivia")


@pytest.mark.parametrize("mark", ":;")
def test_threads_in_the_select_of_pbs_are_named(mark: str) -> None:
    text = f"#!/bin/bash\n#PBS -l select=4:mpiprocs=16{mark}ompthreads=2\nmpiexec -np 64 ./a\n"
    said = to_do(text, None, "olivia")
    assert "ompthreads (set OMP_NUM_THREADS in env) of -l select" in said


NO_GPUS = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\n#SBATCH -t 0:30:00\n"


@pytest.mark.parametrize(
    "launch",
    [
        "mpirun $SITE_MPI -np 8 -npernode 4 ./a.out -x 1",
        "mpirun -np 8 ${MPI_OPTIONS} --mca pml ob1 -npernode 4 ./a.out -x 1",
        "srun $STEP -n 8 --ntasks-per-node=4 ./a.out -x 1",
        "OPTIONS=$(site-options)\nmpirun $OPTIONS -np 8 -npernode 4 ./a.out -x 1",
    ],
)
def test_a_variable_that_is_not_known_before_options_holds_options(launch: str) -> None:
    ported = port(NO_GPUS + launch + "\n", None, "polaris")
    assert ported.settings["command"] == ("./a.out", "-x", "1")
    assert [ported.settings[key] for key in ("nodes", "tasks_per_node")] == [2, 4]
    assert "env" not in ported.settings
    assert [text for text in ported.to_do if "holds options of" in text and "is left out" in text]


@pytest.mark.parametrize(
    ("launch", "program"),
    [
        ("mpirun $SOLVER -np 8", "${SOLVER} -np 8"),
        ("mpirun -np 8 $SOLVER -np 4 case", "${SOLVER} -np 4 case"),
        ("mpirun -np 8 $LMP -in in.lj", "${LMP} -in in.lj"),
        ("srun $SOLVER -n 8 --unknown-option case", "${SOLVER} -n 8 --unknown-option case"),
        ('mpirun "$SOLVER" -np 8 case', '"${SOLVER}" -np 8 case'),
    ],
)
def test_a_variable_that_is_not_known_may_be_the_program(launch: str, program: str) -> None:
    ported = port(NO_GPUS + launch + "\n", None, "polaris")
    assert ported.settings["command"] == ("bash", "-c", f"exec {program}")
    assert "holds options of" not in "\n".join(ported.to_do)


def test_a_variable_whose_value_is_a_program_holds_no_options() -> None:
    ported = port(f"{NO_GPUS}SOLVER=./a.out\nmpirun $SOLVER -np 8 case\n", None, "polaris")
    assert ported.settings["command"] == ("./a.out", "-np", "8", "case")


@pytest.mark.parametrize(
    "made", ["mpicc -O2 -o wave wave.c", "cp ../bin/wave .\n./wave --help", "ln -s ../bin/wave wave"]
)
def test_a_program_that_lines_put_into_the_folder_gets_its_path_with_mpirun(made: str) -> None:
    ported = port(f"{NO_GPUS}{made}\nmpirun -np 8 wave 100\n", None, "polaris")
    assert ported.settings["command"] == ("./wave", "100")
    assert any("mpirun looks for wave in the folder" in line.why for line in ported.report.changed)


def test_what_a_compiler_makes_without_a_name_is_in_the_folder() -> None:
    ported = port(f"{NO_GPUS}mpif90 main.f90\nmpirun -np 8 a.out\n", None, "polaris")
    assert ported.settings["command"] == ("./a.out",)


@pytest.mark.parametrize(
    ("made", "launch"),
    [
        ("module load wave", "mpirun -np 8 wave 100"),  # from a module
        ("mpicc -o wavelet wave.c", "mpirun -np 8 wave 100"),
        ("mpicc -o wave wave.c", "srun -n 8 wave 100"),  # srun searches PATH only
    ],
)
def test_a_program_of_path_keeps_its_name(made: str, launch: str) -> None:
    assert port(f"{NO_GPUS}{made}\n{launch}\n", None, "polaris").settings["command"] == ("wave", "100")


@pytest.mark.parametrize("word", ["nvidia-mgpu", "tensornet-nvidia", "site.cudnn.9", "use-tensorrt"])
def test_a_word_of_nvidia_inside_a_word_is_named_on_amd_only(word: str) -> None:
    text = f"{NO_GPUS}srun python a.py --target {word}\n"
    assert f"command: {word} is of nvidia" in to_do(text, None, "lumi-g")
    assert "is of nvidia" not in to_do(text, None, "polaris")


@pytest.mark.parametrize("word", ["rocm-mgpu", "amdgpu-dkms", "amd-x"])
def test_a_word_of_amd_inside_a_word_is_named_on_nvidia_only(word: str) -> None:
    text = f"{NO_GPUS}srun python a.py --target {word}\n"
    assert f"command: {word} is of amd" in to_do(text, None, "polaris")
    assert "is of amd" not in to_do(text, None, "lumi-g")


@pytest.mark.parametrize("word", ["amdahl", "envidia", "nccl-tests"])
def test_a_word_that_only_contains_a_vendor_is_not_named(word: str) -> None:
    text = f"{NO_GPUS}srun python a.py --target {word}\n"
    assert not re.search(r"is of (amd|nvidia)", to_do(text, None, "lumi-g") + to_do(text, None, "polaris"))


@pytest.mark.parametrize(
    ("option", "sizes"),
    [
        ("-map-by ppr:4:node", [4, 4]),
        ("--map-by ppr:2:node:PE=8", [8, 2]),
        ("--map-by slot", [1, 16]),  # a binding only
        ("--map-by ppr:2:socket", [1, 16]),
    ],
)
def test_ranks_of_a_node_by_map_by_are_sizes(option: str, sizes: list[int]) -> None:
    text = f"#!/bin/bash\n#$ -l h_rt=1:00:00\n#$ -cwd\nmpiexec -n 16 {option} ./app\n"
    ported = port(text, None, "olivia")
    assert [ported.settings[key] for key in ("nodes", "tasks_per_node")] == sizes


def test_workers_of_a_launcher_share_the_cores_of_its_task() -> None:
    head = "#!/bin/bash\n#SBATCH --ntasks=1\n#SBATCH --gpus=4\n#SBATCH --time=1:00:00\n"
    text = f"{head}#SBATCH --cpus-per-task=4\n#SBATCH --mem-per-cpu=40g\naccelerate launch --multi_gpu a.py\n"
    assert "GiB for the ranks" not in to_do(text, None)  # 160 of 512, not 4 times as many
    assert "640 GiB for the ranks" in to_do(text.replace("=40g", "=160g"), None)
    assert "each has" not in to_do(text, None)
    assert "each has" not in to_do(text.replace("cpus-per-task=4", "cpus-per-task=64"), None)


def test_a_variable_with_the_gpus_of_a_node_has_one_value() -> None:
    text = (
        "#!/bin/bash\n#PBS -A Proj\n#PBS -l walltime=0:30:00\n#PBS -l filesystems=home\ncd $PBS_O_WORKDIR\n"
        "GPUS=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node $GPUS train.py --devices $GPUS\n"
    )
    ported = port(text, "polaris", "lumi-g")
    assert ported.settings["command"][-1] == "4"
    assert [ported.settings[key] for key in ("tasks_per_node", "gpus_per_task")] == [4, 1]
    assert "--devices" not in to_do(text, "polaris", "polaris")


@pytest.mark.parametrize(
    ("head", "launch", "said"),
    [
        ("#SBATCH -n 16", "srun ./lmp", False),
        ("#SBATCH -n 16\n#SBATCH --cpus-per-task=4", "srun ./lmp", True),  # more than a core for each
        ("#SBATCH -n 16\n#SBATCH --exclusive", "srun ./lmp", True),  # all GPUs of its nodes
        ("#SBATCH -n 16", "srun ./lmp --device gpu", True),
        ("#$ -pe mpi 16\n#$ -cwd", "mpirun -np $NSLOTS ./lmp", False),
        ("#PBS -l nodes=2:ppn=16\ncd $PBS_O_WORKDIR", "mpirun -np 32 ./lmp", False),
        ("#PBS -l select=2:mpiprocs=16\ncd $PBS_O_WORKDIR", "mpirun -np 32 ./lmp", True),
        ("#COBALT -n 2 -t 60", "mpirun -np 32 -npernode 16 ./lmp", True),
    ],
)
def test_ranks_with_a_core_each_and_no_word_of_gpus_share_none(head: str, launch: str, said: bool) -> None:
    text = f"#!/bin/bash\n{head}\n{launch}\n"
    assert ("share the 4 GPUs of a node here, and how many" in to_do(text, None)) == said


@pytest.mark.parametrize(
    ("directive", "said"),
    [
        ("--reservation=maintenance", True),
        ("--nodelist=nid[001-004],nid007", False),
        ("--exclude=nid001", False),
        ("--exclude=/project/bad-nodes", True),
        ("--nodelist=$NODES", True),
    ],
)
def test_nodes_of_the_other_machine_are_named_unless_only_their_names_are_listed(
    directive: str, said: bool
) -> None:
    text = f"{NO_GPUS}#SBATCH {directive}\nsrun ./a\n"
    assert (f"line 5: {directive} chooses nodes of" in to_do(text, None)) == said


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--nodelist=$FIRST", True),
        ("--relative=1", True),
        ("--exclude=nid001", True),
        ("--kill-on-bad-exit=0", True),
        ("--kill-on-bad-exit=1", False),
        ("--label", False),
    ],
)
def test_options_that_choose_nodes_or_let_ranks_go_on_are_named(option: str, said: bool) -> None:
    name = option.strip("-").partition("=")[0]
    assert (f"srun's {name} " in to_do(f"{NO_GPUS}srun {option} ./a\n", None)) == said


def test_nodes_of_a_job_with_one_node_and_files_of_nodes_are_nothing_to_do() -> None:
    assert "chooses some" not in to_do(f"{NO_GPUS.replace('-N 2', '-N 1')}srun -w nid001 ./a\n", None)
    assert "chooses some" not in to_do(f"{NO_GPUS}mpirun --hostfile hosts -np 8 ./a\n", None)


@pytest.mark.parametrize(
    ("name", "said"),
    [("SLURM_NTASKS", True), ("SLURM_HOSTFILE", True), ("SRUN_CPUS_PER_TASK", False), ("SBATCH_GPUS", False)],
)
def test_variables_by_which_srun_has_sizes_are_named(name: str, said: bool) -> None:
    assert (f"{name} says sizes" in to_do(f"{NO_GPUS}export {name}=4\nsrun ./a\n", None)) == said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lstopo node.png", True),
        ("lstopo --no-io", False),
        ("date --set 12:00", True),
        ("date +%F", False),
        ("let SIZE=4*2", True),  # the launch reads it
        ("let OTHER=4*2", False),
    ],
)
def test_a_command_that_does_more_than_print_is_named(line: str, said: bool) -> None:
    assert ("line 5: " in to_do(f"{NO_GPUS}{line}\nsrun ./a $SIZE\n", None)) == said


def test_a_comment_for_the_old_scheduler_is_nothing_to_do() -> None:
    text = f"{NO_GPUS}#SBATCH --comment=mine\nsrun ./a\n"
    assert "--comment" not in to_do(text, None)
    assert port(text, None, "olivia").settings["directives"] == ("--comment=mine",)


def test_a_point_is_named_once() -> None:
    text = f"{LUMI}deepspeed --num_gpus $(count-gpus) train.py\n"
    assert to_do(text).count("set nodes and tasks_per_node") == 1


def test_threads_that_the_launcher_gives_are_one_number() -> None:
    text = "#!/bin/bash\n#COBALT -n 2 -t 60\naprun -n 2 -N 1 -e OMP_NUM_THREADS=8 gmx_mpi mdrun -ntomp 8\n"
    assert "number of threads" not in to_do(text, None, "olivia")
    alone = text.replace("-e OMP_NUM_THREADS=8", "")
    assert "number of threads" in to_do(alone, None, "olivia")
    # A program that goes by its own option does so here, too.
    assert "number of threads" not in to_do(alone.replace("-ntomp 8", "--num_threads=8"), None, "olivia")


def test_a_value_pasted_into_the_text_of_a_shell_loses_its_quotes_there() -> None:
    args = 'ARGS="--name \\"a b\\" --n 3"\n'
    pasted = port(f"{LUMI}{args}srun bash -c 'python sim.py '\"$ARGS\"\n", "lumi-g", "polaris")
    assert pasted.settings["command"] == ("python", "sim.py", "--name", "a b", "--n", "3")
    plain = port(f"{LUMI}N=3\nsrun bash -c 'python sim.py --n '\"$N\"\n", "lumi-g", "polaris")
    assert plain.settings["command"] == ("python", "sim.py", "--n", "3")


def test_a_container_that_starts_in_a_text_of_several_programs_is_named() -> None:
    said = to_do(f"{LUMI}srun bash -c './prepare; apptainer exec --rocm my.sif python a.py'\n")
    assert "container: line 5: apptainer exec --rocm my.sif stays in the command" in said
    assert "stays in the command" not in to_do(f"{LUMI}srun bash -c './prepare; apptainer inspect my.sif'\n")


def test_more_memory_than_a_node_gives_a_job_is_asked_for() -> None:
    head = POLARIS.replace("#PBS -q debug\n", "")
    slurm = "#!/bin/bash\n#SBATCH -N 1 -n 8 -t 0:30:00\n#SBATCH --mem={}G\nsrun ./a\n"
    assert "line 3: --mem=900G: 900 GiB for the ranks of a node" in to_do(slurm.format(900), None, "lumi-g")
    assert "--mem" not in to_do(slurm.format(100), None, "lumi-g")
    assert "GiB" not in to_do(f"{head}mpiexec -n 8 --ppn 4 ./a\n", "polaris", "lumi-g")


def test_paths_of_a_program_in_a_container_are_named_unless_a_bind_holds_them() -> None:
    said = to_do(f"{LUMI}srun singularity exec -B /proj/me:/mnt/d my.sif ./a --in /mnt/d/x --out /proj/y\n")
    assert "command: /proj/y has to be a path on polaris" in said
    assert "/mnt/d/x" not in said


def test_a_shared_disk_below_usr_is_no_folder_of_the_system() -> None:
    assert "command: /usr/workspace/me/a has to be a path" in to_do(f"{LUMI}srun /usr/workspace/me/a\n")
    assert "/usr/local" not in to_do(f"{LUMI}srun /usr/local/bin/a\n")


@in_one_test("site", ["olivia", "tuolumne"])
def test_mail_that_a_script_turns_off_is_nothing_to_do(site: str) -> None:
    text = f"{LUMI}#SBATCH --mail-type=NONE --mail-user=a@b.org\nsrun ./a\n"
    assert "mail" not in to_do(text, to=site)
    assert ("sends mail" in to_do(text.replace("NONE", "END"), to=site)) == (site == "tuolumne")


def test_a_pasted_value_of_the_run_alone_with_quotes_is_named() -> None:
    args = 'ARGS="--name \\"a b\\" --dir /x/$USER"\n'
    assert "line 6 pastes ARGS into the text" in to_do(f"{LUMI}{args}srun bash -c './a '\"$ARGS\"\n")
    assert "pastes" not in to_do(
        f"{LUMI}{args.replace(chr(92), '').replace(' b', '')}srun bash -c './a '$USER\n"
    )
    ported = port(f'{LUMI}{args}srun bash -c "./a $ARGS"\n', "lumi-g", "polaris")
    assert ported.settings["command"][2] == "exec ./a --name 'a b' --dir \"/x/$USER\""


def test_the_output_of_each_rank_in_a_file_of_its_own_is_named() -> None:
    said = "line 5 has the output in out.$SLURM_PROCID, one for each rank"
    assert said in to_do(f"{LUMI}srun sh -c './a > out.$SLURM_PROCID'\n")
    assert "has the output" not in to_do(f"{LUMI}srun sh -c './a > out.log'\n")


TEXT = """export ROOT="${SLURM_SUBMIT_DIR:-$(pwd)}"
cd "$ROOT"
srun bash -c '
  cd "$ROOT"
  export OMP_NUM_THREADS="${OMP_NUM_THREADS:-4}"
  ./prepare; ./a ${SLURM_GPUS_ON_NODE:-1}
'
"""


@in_one_test(
    "old, new, said",
    [
        ("", "", ""),
        ('  cd "$ROOT"', "  cd /x", "command: cd is of hpclaunch's script"),
        ('  cd "$ROOT"', '  (cd "$ROOT/x"; ./b)', "command: cd is of hpclaunch's script"),
        ("${OMP_NUM_THREADS:-4}", "99", "command: OMP_NUM_THREADS is of hpclaunch's script"),
        (
            "${SLURM_GPUS_ON_NODE:-1}",
            "$SLURM_LOCALID $SLURM_CONF",
            "reads $SLURM_CONF, which jobs on polaris",
        ),
    ],
)
def test_what_hpclaunch_sets_and_what_has_a_default_is_nothing_to_do(old: str, new: str, said: str) -> None:
    found = to_do(LUMI + TEXT.replace(old, new) if old else LUMI + TEXT)
    assert said in found if said else not any(word in found for word in ("folder", "cd ", "OMP", "jobs on"))


@in_one_test(
    "line",
    [
        "#SBATCH --begin=now",
        "#SBATCH --clusters=amarel",
        "rm -f hosts\nscontrol show hostnames | while read h; do\necho $h >> hosts\ndone",
    ],
)
def test_what_has_no_meaning_here_is_nothing_to_do(line: str) -> None:
    script = f"{LUMI}{line}\nsrun bash -c 'deepspeed --num_gpus 8 --hostfile hosts a.py\n'\n"
    assert not re.search("line", to_do(script))


def test_only_the_first_component_has_directives_that_count() -> None:
    head = "#!/bin/bash\n#SBATCH -N 2 -n 8 -t 5\n#SBATCH hetjob\n#SBATCH --nodes=1\n"
    said = to_do(f"{head}srun ./a : ./b\nsrun -n 2 hostname : -n 1 hostname\n", None)
    assert "is not read" not in said
    assert said.count("one component") == 1
    assert "line 6" not in said


def test_an_image_that_is_left_out_is_said_once() -> None:
    said = to_do(f"{LUMI}srun --environment ./a.toml ./a\n")
    assert said.count("./a.toml has to be") == 0
    assert "./a.toml is left out" in said


def test_the_report_says_once_that_the_last_program_is_taken() -> None:
    changed = {one.line: one for one in port(f"{LUMI}./a -x\n", "lumi-g", "polaris").report.changed}
    assert changed[5].to == "command: ./a -x"
    assert "its last program is taken" in changed[5].why


@in_one_test(
    "body, command",
    [
        ("srun mpi_check -r\n/bin/rm order", ("mpi_check", "-r")),  # a tool by its path is no program
        ("srun mpi_check -r\n./rm order", ("./rm", "order")),
        ("mpirun -np 8 python -c 'print(1)'", ("python", "-c", "print(1)")),  # not mpirun in each rank
        ("srun bash -c 'echo $(nvidia-smi | grep MiB)' > m\nsrun python a.py", ("python", "a.py")),
        ("srun bash -c 'grep MiB < m'\nsrun -n 1 ./a", ("bash", "-c", "grep MiB < m")),
    ],
)
def test_tools_and_launches_of_information_are_not_the_program(body: str, command: tuple[str, ...]) -> None:
    assert port(f"{NO_GPUS}{body}\n", None, "polaris").settings["command"] == command


def test_the_own_program_of_an_image_is_no_path_of_the_machine() -> None:
    said = to_do(f"{LUMI}srun singularity run my.sif\n")
    assert "/singularity has to be a path" not in said
    assert "/singularity/a has to be a path" in to_do(f"{LUMI}srun ./a /singularity/a\n")


@in_one_test("text", ["./a < in.txt", "echo 3 | ./a", "./a <<< 3"])
def test_a_program_in_a_text_keeps_its_stdin(text: str) -> None:
    command = port(f"{NO_GPUS}srun bash -c '{text}'\n", None, "polaris").settings["command"]
    assert command == ("bash", "-c", text)


@in_one_test(
    "line, last, said",
    [
        ("python a.py < in.txt", "exec python a.py < in.txt", ""),
        ("python a.py", "a.py", ""),
        ("python a.py <<< 3", "a.py", "command: line 7 gives the program a text as stdin"),
    ],
)
def test_a_program_in_a_file_that_the_script_writes_keeps_its_stdin(line: str, last: str, said: str) -> None:
    text = f"{NO_GPUS}cat > /x/run.sh << EOF\n#!/bin/bash\n{line}\nEOF\nsrun /x/run.sh\n"
    ported = port(text, None, "polaris")
    assert ported.settings["command"][-1] == last
    assert said in "\n".join(ported.to_do) if said else "reads what" not in "\n".join(ported.to_do)


@in_one_test(
    "words, command",
    [
        ("{1,2}.x", ("1.x", "2.x")),
        ("a{b,c}", ("ab", "ac")),
        ("{1..3}", ("1", "2", "3")),
        ("{3..1}", ("3", "2", "1")),
        ("{08..10}", ("08", "09", "10")),
        ("f{1,}", ("f1", "f")),
        ("'{1,2}'", ("{1,2}",)),
        ("{a,b}{1,2}", ("a1", "a2", "b1", "b2")),
        ("{a..c}", ("a", "b", "c")),
        ("{a,,b} {,}", ("a", "b")),
        ("{a,b}'c d'", ("ac d", "bc d")),
        ("{one}", ("{one}",)),
        ("{}", ("{}",)),
        ('\'{"a": 1, "b": 2}\'', ('{"a": 1, "b": 2}',)),
    ],
)
def test_a_list_in_braces_is_words_as_bash_makes_them(words: str, command: tuple[str, ...]) -> None:
    assert port(f"{NO_GPUS}srun ./a {words}\n", None, "polaris").settings["command"] == ("./a", *command)


@in_one_test(
    "words, env",
    [
        ("X={a,b}", {"X": "b"}),  # two words, of which the last one holds
        ("{A,B}_X=1", {"A_X": "1", "B_X": "1"}),
        ('X="{a,b}"', {"X": "{a,b}"}),
        ("X='{a,b}'", {"X": "{a,b}"}),
        ("X=a{b}", {"X": "a{b}"}),
    ],
)
def test_braces_in_an_argument_of_export_are_words_as_bash_makes_them(
    words: str, env: dict[str, str]
) -> None:
    assert port(f"{NO_GPUS}export {words}\nsrun ./a\n", None, "polaris").settings["env"] == env


@in_one_test(
    "lines, word", [("X={a,b}\nsrun ./a $X", "{a,b}"), ("declare -x X=({a,b})\nsrun ./a ${X[1]}", "b")]
)
def test_braces_stay_in_a_plain_assignment_and_are_items_of_an_array(lines: str, word: str) -> None:
    assert port(f"{NO_GPUS}{lines}\n", None, "polaris").settings["command"] == ("./a", word)


@in_one_test("quotes, command", [('"', ("--name", "c d")), ("", ("--name", "c", "d"))])
def test_items_of_an_array_are_split_unless_quotes_hold_them(quotes: str, command: tuple[str, ...]) -> None:
    text = f'{NO_GPUS}A=(--name "c d")\nsrun ./a {quotes}${{A[@]}}{quotes}\n'
    assert port(text, None, "polaris").settings["command"] == ("./a", *command)


@in_one_test(
    "word, command",
    [
        ("$HOME/{a,b}", 'exec ./a "$HOME/a" "$HOME/b"'),
        ('"$HOME"/{a,b}', 'exec ./a "$HOME/a" "$HOME/b"'),
        ('"$HOME/{a,b}"', 'exec ./a "$HOME/{a,b}"'),
        ("{1..2000}", "exec ./a ${FILL_IN_WORD}"),
    ],
)
def test_braces_beside_a_variable_of_the_run_are_read_first(word: str, command: str) -> None:
    assert port(f"{NO_GPUS}srun ./a {word}\n", None, "polaris").settings["command"] == ("bash", "-c", command)


@in_one_test(
    "lines, command",
    [
        ('srun ./a "${L[*]}"', ("a b",)),
        ('IFS=,\nsrun ./a "${L[*]}"', ("a,b",)),
        ('IFS=,\nsrun ./a "--x=${L[*]}"', ("--x=a,b",)),
        ('IFS=\nsrun ./a "${L[*]}"', ("ab",)),
        ('OLD=$IFS\nIFS=,\nIFS=$OLD\nsrun ./a "${L[*]}"', ("a b",)),
        ('J=$(IFS=,; echo)\nsrun ./a "${L[*]}"', ("a b",)),
        ('IFS=,\nsrun ./a "${L[@]}"', ("a", "b")),
        ("IFS=,\nA=x\nsrun ./a $A", ("x",)),
        ("srun ./a ${L[*]}", ("a", "b")),
        ('srun ./a "--x=${L[@]}y"', ("--x=a", "by")),
        ("A='1 2'\nsrun ./a 'a b'$A", ("a b1", "2")),
        ('M=()\nsrun ./a "${M[@]}" ${M[@]}', ()),
        ('M=()\nsrun ./a "x${M[@]}" "${M[*]}"', ("x", "")),
    ],
)
def test_a_list_is_joined_by_the_sign_of_ifs_and_split_at_blanks(
    lines: str, command: tuple[str, ...]
) -> None:
    text = f"{NO_GPUS}L=(a b)\n{lines}\n"
    assert port(text, None, "polaris").settings["command"] == ("./a", *command)


@in_one_test("word", ['"${L[@]}"', "${L[@]}", '"${L[@]:1}"', '"${L[*]}"'])
def test_items_with_places_of_their_own_are_named(word: str) -> None:
    made = port(f"{NO_GPUS}L=([2]=c [0]=a)\nsrun ./a {word}\n", None, "polaris")
    assert "FILL_IN" in str(made.settings["env"])
    assert "[0]=a" not in str(made.settings)


@in_one_test("lines", ["IFS=,\nA=x,y\nsrun ./a $A", 'read IFS\nsrun ./a "${L[*]}"'])
def test_a_split_at_other_signs_is_named(lines: str) -> None:
    said = str(port(f"{NO_GPUS}L=(a b)\n{lines}\n", None, "polaris").to_do)
    assert re.search(r"env (L|FILL_IN_WORD): FILL_IN", said)


@in_one_test(
    "word, command",
    [
        ('"${L[@]:1}"', ("b c", "d")),
        ("${L[@]:1}", ("b", "c", "d")),
        ('"${L[@]:0:2}"', ("a", "b c")),
        ('"${L[@]: -1}"', ("d",)),
        ('"${L[@]: -4}"', ()),
        ('"${L[*]:1}"', ("b c d",)),
    ],
)
def test_a_part_of_a_list_is_its_items(word: str, command: tuple[str, ...]) -> None:
    text = f'{NO_GPUS}L=(a "b c" d)\nsrun ./a {word}\n'
    assert port(text, None, "polaris").settings["command"] == ("./a", *command)


@in_one_test(
    "lines", ['L=(*.txt)\nsrun ./a "${L[@]:1}"', 'L=(a b)\nsrun ./a "${L[@]:$N}"', 'srun ./a "${L[@]:1}"']
)
def test_a_part_of_a_list_that_only_the_run_knows_is_named(lines: str) -> None:
    assert re.search(
        r"env (L|FILL_IN_WORD): FILL_IN", str(port(f"{NO_GPUS}{lines}\n", None, "polaris").to_do)
    )


def test_the_length_of_a_value_keeps_its_sign() -> None:
    command = port(
        f"{NO_GPUS}L=(a b)\nsrun ./a ${{#L[@]}} ${{!L[@]}} ${{L[@]#a}}\n", None, "polaris"
    ).settings["command"]
    assert command == ("bash", "-c", "exec ./a ${#L[@]} ${!L[@]} ${L[@]#a}")


def test_words_that_a_condition_adds_to_a_list_are_named_and_the_others_are_there() -> None:
    head = f"{NO_GPUS}L=(a b)\n"
    added = port(
        f'{head}if [ -n "$R" ]; then\nL+=(--resume "$R")\nfi\nsrun ./a "${{L[@]}}"\n', None, "polaris"
    )
    assert added.settings["command"] == ("./a", "a", "b")
    assert "command: the words of line 7, which a condition or a loop adds" in "\n".join(added.to_do)
    always = port(f'{head}L+=(c)\nsrun ./a "${{L[@]}}"\n', None, "polaris")
    assert (always.settings["command"], "which a condition" in str(always.to_do)) == (
        ("./a", "a", "b", "c"),
        False,
    )
    either = port(f'{NO_GPUS}if x; then\nL=(a)\nelse\nL=(b)\nfi\nsrun ./a "${{L[@]}}"\n', None, "polaris")
    assert either.settings["command"] == ("bash", "-c", "exec ./a ${L}")  # whose words are filled in
    assert "env L: FILL_IN_L" in "\n".join(either.to_do)


@in_one_test(
    "file, named",
    [
        ("/etc/profile", False),
        ("/etc/profile.d/modules.sh", False),
        ("/usr/share/lmod/lmod/init/bash", False),
        ("/usr/share/Modules/init/sh", False),
        ("/etc/profile.d/conda.sh", True),
        ("./modules.txt", True),
        ("load_modules.bash", True),
        ("~/.bashrc", True),
    ],
)
def test_a_file_that_makes_module_known_is_nothing_to_set_up(file: str, named: bool) -> None:
    said = str(port(f"{NO_GPUS}source {file}\nsrun ./a\n", None, "polaris").to_do)
    assert (file in said) == named


@in_one_test(
    "lines, named",
    [
        ("srun ./a\nif [ $? -ne 0 ]; then echo failed; exit 1; fi", False),
        ("srun ./a\nif [ $? -ne 0 ]; then\nrm x\nexit 1\nfi", True),
        ("if [ ! -f x ]; then echo no x; exit 1; fi\nsrun ./a", True),
    ],
)
def test_a_condition_behind_the_launch_that_only_ends_the_script_is_settled(lines: str, named: bool) -> None:
    said = str(port(f"{NO_GPUS}{lines}\n", None, "polaris").to_do)
    assert ("a condition" in said) == named


@in_one_test("ranks, memory, named", [(4, 200, False), (1, 200, True), (4, 600, True), (2, 200, False)])
def test_the_memory_of_a_chunk_is_for_all_its_ranks(ranks: int, memory: int, named: bool) -> None:
    """A node of Polaris has 512 GiB."""
    head = f"#!/bin/bash\n#PBS -l select=4:ncpus=8:ngpus={ranks}:mpiprocs={ranks}:mem={memory}gb\n"
    said = str(port(f"{head}#PBS -l walltime=1:00:00\nmpiexec ./a\n", None, "polaris").to_do)
    assert ("mem of -l select" in said) == named


@in_one_test(
    "value, env",
    [
        ("OMP_PLACES=cores", "cores"),
        ("OMP_PROC_BIND=spread,close", "spread,close"),
        ("OMP_PLACES={0:4}", None),
        ("GOMP_CPU_AFFINITY=cores", None),
    ],
)
def test_places_of_threads_that_hold_on_any_node_are_kept(value: str, env: str | None) -> None:
    name, _, text = value.partition("=")
    for lines in (f"export {name}='{text}'\nsrun ./a", f"{name}='{text}' srun ./a"):
        assert port(f"{NO_GPUS}{lines}\n", None, "polaris").settings.get("env", {}).get(name) == env, lines


@in_one_test(
    "file, named", [("place$i.txt", True), ("$i.dat", True), ("log_$i.txt", False), ("$i.out", False)]
)
def test_output_whose_name_begins_with_a_variable_may_be_data(file: str, named: bool) -> None:
    text = f"{NO_GPUS}for i in 1 2; do\nsrun ./a > {file}\ndone\n"
    assert ("which looks like data" in str(port(text, None, "polaris").to_do)) == named


@in_one_test(
    "lines, env, command",
    [
        ('export "A=1 2" B=3', {"A": "1 2", "B": "3"}, ("./a",)),
        ("declare -x 'A=$B'", {"A": "$B"}, ("./a",)),
        ('B=x\nexport "A=$B/y"', {"A": "x/y"}, ("./a",)),
        ('export "A=$HOME/y"', {}, ("bash", "-c", 'export A="$HOME/y"\nexec ./a')),
        ('echo "A=1"', {}, ("./a",)),
        ('"A=1" true', {}, ("./a",)),
        ('export "$N=1"', {}, ("./a",)),
    ],
)
def test_an_exported_assignment_may_stand_in_quotes(
    lines: str, env: dict[str, str], command: tuple[str, ...]
) -> None:
    settings = port(f"{NO_GPUS}{lines}\nsrun ./a\n", None, "polaris").settings
    assert (settings.get("env", {}), settings["command"]) == (env, command)


def test_an_item_by_the_index_stays_in_quotes() -> None:
    head = f"{NO_GPUS}#SBATCH --array=0-8\nL=(a b c)\nM=${{L[$((SLURM_ARRAY_TASK_ID / 3))]}}\n"
    text = 'exec ./a "$(items=(a b c); echo "${items[$HPCLAUNCH_ARRAY_INDEX / 3]}")"'
    assert port(f"{head}srun ./a $M\n", None, "polaris").settings["command"] == ("bash", "-c", text)


def test_an_array_larger_than_the_queue_takes_is_to_be_split() -> None:
    lines = "#SBATCH --array=0-{}\n#SBATCH -N 1 --ntasks-per-node=8 --gpus-per-node=8 -t 10\nsrun ./a\n"
    few, many = (to_do("#!/bin/bash\n" + lines.format(last), None, "lumi-g") for last in (99, 999))
    said = "array: 1000 jobs, and standard-g takes 210 of one user"
    assert (said in few, said in many) == (False, True)
