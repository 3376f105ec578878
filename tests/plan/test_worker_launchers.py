"""Launchers that start workers of their own: how a command is read, what is filled in, refused and told."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.plan.worker_launchers import ACCELERATE, DEEPSPEED, FABRIC, TORCHRUN, find_launcher
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here

LUMI = ("--site", "lumi-g", "--account", "project_465000001")
TRAIN = "import torch\n"
CONFIG = """\
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
machine_rank: 0
main_process_ip: 10.1.2.3
main_process_port: 29500
fsdp_config:
  fsdp_version: 2
  fsdp_offload_params: false
"""
DEEPSPEED_CONFIG = """\
distributed_type: DEEPSPEED
deepspeed_config: {zero_stage: 2, deepspeed_multinode_launcher: pdsh}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "acc.yaml").write_text(CONFIG)
    (tmp_path / "ds.yaml").write_text(DEEPSPEED_CONFIG)
    return tmp_path


def script(here: Path, *words: str, command: str) -> tuple[str, str]:
    """The script of a dry run, and what was said."""
    line = ("submit", *LUMI, *words, "--dry-run", "--", *shlex.split(command))
    answer = hpclaunch_here(*line, folder=here)
    return answer.stdout, answer.stderr


READ = {
    "torchrun --nproc_per_node=4 --nnodes 2 train.py --lr 1": (TORCHRUN, 1, "python train.py --lr 1"),
    "torchrun --nproc 4 -m lib.train x": (TORCHRUN, 1, "python -m lib.train x"),
    "/venv/bin/torchrun --standalone train.py": (TORCHRUN, 1, "python train.py"),
    "python3.11 -m torch.distributed.run train.py": (TORCHRUN, 3, "python train.py"),
    "env A=b torchrun train.py": (TORCHRUN, 3, "python train.py"),
    "torchrun --no-python ./a.out 1": (TORCHRUN, 1, "./a.out 1"),
    "torchrun -- train.py": (TORCHRUN, 1, "python train.py"),
    "accelerate launch --multi_gpu --mixed_precision bf16 train.py": (ACCELERATE, 2, "python train.py"),
    "accelerate-launch --config_file=acc.yaml train.py": (ACCELERATE, 1, "python train.py"),
    "python3 -u -I -m torch.distributed.run train.py": (TORCHRUN, 5, "python train.py"),
    "deepspeed --num_gpus 8 train.py --deepspeed": (DEEPSPEED, 1, "python train.py --deepspeed"),
    "deepspeed --module lib.train --x": (DEEPSPEED, 1, "python -m lib.train --x"),
    "fabric run --devices 2 train.py": (FABRIC, 2, "python train.py"),
}


@in_one_test("command", READ)
def test_a_command_is_read_as_its_launcher_reads_it(command: str) -> None:
    found = find_launcher(tuple(command.split()))
    assert found is not None
    launcher, words, program = READ[command]
    assert (found.launcher, found.words, " ".join(found.program)) == (launcher, words, program)


@in_one_test(
    "command",
    [
        "python train.py",
        "accelerate config",
        "fabric consolidate x",
        "torch",
        "python -u",
        "bash -u -m torch.distributed.run x.py",
    ],
)
def test_what_starts_no_workers_is_none(command: str) -> None:
    assert find_launcher(tuple(command.split())) is None


@given(st.lists(st.text(min_size=1, max_size=8).filter(lambda word: not word.startswith("-")), max_size=4))
def test_the_words_of_the_program_stay_as_they_are(words: list[str]) -> None:
    found = find_launcher(("torchrun", "--nproc_per_node", "2", "train.py", *words))
    assert found is not None
    assert found.program == ("python", "train.py", *words)
    assert found.tail == 1 + len(words)


def test_one_task_per_node_with_the_whole_node(here: Path) -> None:
    text, said = script(here, "--nodes", "2", command="torchrun train.py --lr 1")
    assert "refused" not in said
    assert "#SBATCH --ntasks-per-node=1  # torchrun, which starts the ranks on each node" in text
    assert "# 2 nodes x 8 ranks = 16 ranks, started on each node by torchrun." in text
    assert "srun --kill-on-bad-exit=1 --cpu-bind=none" in text
    assert "export PET_NNODES=2 PET_NPROC_PER_NODE=8" in text
    assert "PET_RDZV_BACKEND=c10d" in text
    assert (
        text.split("HPCLAUNCH_NODE\n")[-1]
        .split("\n# Sources")[0]
        .rstrip()
        .endswith("torchrun train.py --lr 1")
    )


FILLED = {
    "accelerate launch train.py": "--num_machines=2 --num_processes=16 --machine_rank"
    " --main_process_ip --main_process_port --multi_gpu",
    "accelerate launch --config_file acc.yaml train.py": "--num_machines=2 --num_processes=16 --machine_rank"
    " --main_process_ip --main_process_port",
    "accelerate launch --use_deepspeed train.py": "--num_machines=2 --num_processes=16 --machine_rank"
    " --main_process_ip --main_process_port --deepspeed_multinode_launcher=standard",
    "accelerate launch --num_processes 16 --main_process_port 1 --multi_gpu train.py": "--num_machines=2"
    " --machine_rank --main_process_ip",
    "deepspeed train.py": "--hostfile --no_ssh --node_rank --master_addr --master_port --no_python",
    "fabric run train.py": "--devices=8 --num_nodes=2 --node_rank --main_address --main_port",
}


@pytest.mark.parametrize("command", FILLED)
def test_what_a_command_leaves_open_is_filled_in(command: str, here: Path) -> None:
    text, said = script(here, "--nodes", "2", command=command)
    assert "refused" not in said
    (line,) = re.findall(r"^set -- (\"\$\{@.*?)\nexec", text, re.MULTILINE | re.DOTALL)
    filled = [
        re.sub(r"=[\"$].*", "", word) for word in line.replace("\\\n", " ").split() if word.startswith("--")
    ]
    assert filled == FILLED[command].split()


def test_a_static_rendezvous_of_the_command_gets_the_numbers_of_its_nodes(here: Path) -> None:
    text, _ = script(here, "--nodes", "2", command="torchrun --master_addr a --master_port 1 train.py")
    assert 'export PET_NODE_RANK="${SLURM_PROCID:?srun gave no rank}"' in text
    assert "PET_RDZV" not in text


def test_torchrun_in_a_script_is_filled_in_by_its_variables(here: Path) -> None:
    (here / "run.sh").write_text("export A=1\ntorchrun --nproc_per_node 8 train.py --lr 1\n")
    text, said = script(here, "--nodes", "2", command="bash run.sh")
    assert "refused" not in said
    assert "export PET_NNODES=2  #" in text
    assert "PET_RDZV_BACKEND=c10d" in text
    assert "started on each node by torchrun" in text
    assert "# Framework: torch; run.sh, line 2: train.py, line 1: imports torch" in text
    _, said = script(here, "--nodes", "2", "--as-ranks", command="bash run.sh")
    assert "leave it out there: run.sh, line 2" in said


def test_torchrun_behind_shells_in_a_shell_is_started_once_per_node(here: Path) -> None:
    nested = """bash -c 'export A=1; exec bash -lc "cd .; exec torchrun --nproc_per_node 8 train.py"'"""
    text, said = script(here, "--nodes", "2", command=nested)
    assert "refused" not in said
    assert "started on each node by torchrun" in text
    plain = """bash -c 'export A=1; exec bash -lc "cd .; exec python train.py"'"""
    assert "started on each node by torchrun" not in script(here, "--nodes", "2", command=plain)[0]


@pytest.mark.parametrize(
    "text",
    ["accelerate launch train.py", "torchrun a.py\ntorchrun b.py", "deepspeed train.py"],
)
def test_other_launchers_in_a_script_are_named_with_their_line(text: str, here: Path) -> None:
    (here / "run.sh").write_text(f"cd .\n{text}\n")
    _, said = script(here, "--nodes", "2", command="bash run.sh")
    assert "submitting this job is refused: run.sh, line 2: " in said


def test_sizes_that_the_command_says_are_those_of_the_job(here: Path) -> None:
    text, _ = script(here, command="torchrun --nnodes=1:3 --nproc_per_node 4 train.py")
    assert "#SBATCH --nodes=3" in text
    assert "# 3 nodes x 4 ranks = 12 ranks" in text
    assert "PET_NNODES" not in text
    assert "PET_NPROC" not in text
    text, _ = script(here, command="accelerate launch --config_file acc.yaml train.py")
    assert "# 2 nodes x 8 ranks = 16 ranks" in text


REFUSED = {
    "torchrun --nproc_per_node 4 train.py": ("--tasks-per-node 8", "--nproc_per_node 4, but the job has"),
    "torchrun --nnodes 3 train.py": ("--nodes 2", "--nnodes 3, but the job has --nodes 2"),
    "accelerate launch --config_file acc.yaml train.py": (
        "--nodes 4",
        "acc.yaml: num_machines 2, but the job has",
    ),
    "deepspeed --num_gpus 4 train.py": ("--tasks-per-node 8", "deepspeed --num_gpus 4, but the job has"),
}


@pytest.mark.parametrize("command", REFUSED)
def test_sizes_that_contradict_the_job_are_refused_with_both(command: str, here: Path) -> None:
    words, message = REFUSED[command]
    answer = hpclaunch_here("submit", *LUMI, *words.split(), "--dry-run", "--", *command.split(), folder=here)
    assert answer.returncode == 3
    assert message in answer.stderr


def test_more_workers_than_gpus_are_refused(here: Path) -> None:
    answer = hpclaunch_here(
        "submit",
        *LUMI,
        "--nodes",
        "1",
        "--dry-run",
        "--",
        "torchrun",
        "--nproc_per_node=16",
        "train.py",
        folder=here,
    )
    assert answer.returncode == 3
    assert "16 ranks per node share 8 GPUs" in answer.stderr


PROBLEMS = {
    "torchrun --standalone train.py": "torchrun --standalone is for one node, the job has 2",
    "torchrun --node_rank 0 --master_addr a train.py": "all 2 nodes would have this number",
    "torchrun --rdzv_endpoint=localhost:1 train.py": "localhost:1 is another machine on each node",
    "torchrun --numa-binding node train.py": "torchrun --numa_binding",
    "torchrun --virtual-local-rank train.py": "torchrun --virtual_local_rank",
    "deepspeed --bind_cores_to_rank train.py": "it binds each worker, and so does hpclaunch",
    "deepspeed --hostfile hosts train.py": "hpclaunch writes the file",
    "deepspeed --include localhost:0,1 train.py": "--num_gpus N is enough",
    "accelerate launch --enable_cpu_affinity train.py": "it moves each worker to other cores",
    "accelerate launch --config_file ds.yaml train.py": "deepspeed_multinode_launcher pdsh",
    "accelerate launch --cpu train.py": "accelerate starts one process per node on CPUs alone (--cpu)",
    "composer train.py": "composer would start its processes 16 times",
    "horovodrun -np 8 python train.py": "horovodrun would start its processes 16 times",
}


@pytest.mark.parametrize("command", PROBLEMS)
def test_what_cannot_work_is_refused_before_the_queue(command: str, here: Path) -> None:
    _, said = script(here, "--nodes", "2", command=command)
    assert "submitting this job is refused: " in said
    assert PROBLEMS[command] in said


def test_a_binding_that_is_off_leaves_it_to_the_launcher(here: Path) -> None:
    _, said = script(here, "--binding", "off", command="deepspeed --bind_cores_to_rank train.py")
    assert "refused" not in said


def test_ranks_without_the_launcher_say_what_is_lost(here: Path) -> None:
    command = "accelerate launch --config_file acc.yaml --gradient_clipping 1 train.py --lr 1"
    text, said = script(here, "--as-ranks", command=command)
    lost = "--gradient_clipping, distributed_type, mixed_precision, fsdp_config.fsdp_version"
    assert f"--as-ranks: accelerate launch does not run, so nothing reads {lost}" in said
    assert text.rstrip().split("\n\n# Sources")[0].endswith("python train.py --lr 1")
    assert "# 2 nodes x 8 ranks = 16 ranks.\n" in text
    _, said = script(here, "--as-ranks", command="python train.py")
    assert "--as-ranks: the command has no launcher to leave out" in said


def test_the_addresses_of_a_configuration_file_are_replaced_and_told(here: Path) -> None:
    _, said = script(here, "--nodes", "2", command="accelerate launch --config_file acc.yaml train.py")
    assert "acc.yaml: machine_rank, main_process_ip, main_process_port are those of this job's nodes" in said


def test_a_configuration_file_that_is_no_yaml_is_named(here: Path) -> None:
    (here / "acc.yaml").write_text("a: [1\n")
    words = (
        "submit",
        *LUMI,
        "--dry-run",
        "--",
        "accelerate",
        "launch",
        "--config_file",
        "acc.yaml",
        "train.py",
    )
    answer = hpclaunch_here(*words, folder=here)
    assert answer.returncode == 3
    assert "acc.yaml" in answer.stderr


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("L.Trainer(devices=8, num_nodes=4)", "train.py, line 2: num_nodes=4, but the job has 2"),
        ("Trainer(devices=4, num_nodes=2)", "train.py, line 2: devices=4, but the job has 8"),
        ("L.Trainer(devices=8, num_nodes=2)", None),
        ("L.Trainer(devices=-1, num_nodes=n)", None),
    ],
)
@pytest.mark.parametrize("start", ["python", "torchrun"])
def test_the_sizes_of_a_trainer_are_compared(start: str, call: str, message: str | None, here: Path) -> None:
    (here / "train.py").write_text(f"import lightning as L\ntrainer = {call}\n")
    _, said = script(here, "--nodes", "2", command=f"{start} train.py")
    if message:
        assert message in said
    else:
        assert "but the job has" not in said


def test_a_launcher_alone_names_the_framework(here: Path) -> None:
    text, _ = script(here, command="deepspeed nosuch.py")
    assert "# Framework: deepspeed; deepspeed starts it." in text
