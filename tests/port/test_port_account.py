"""An account of the whole script: each line is carried, made here, dropped for a true reason, or named."""

from __future__ import annotations

import subprocess

from tests.in_one_test import in_one_test
from tests.port.test_port_sound import SLURM, port, to_do


def command(body: str, to: str = "polaris") -> str:
    return str(port(f"{SLURM}{body}\n", to).settings["command"][-1])


def test_what_is_set_after_the_launch_is_not_of_the_job() -> None:
    ported = port(f"{SLURM}export A=1\nsrun ./a\nexport A=2\nB=3\nexport B\n")
    assert ported.settings["env"] == {"A": "1"}
    assert "the launch of line 4 is over" in str(ported.report)
    assert port(f"{SLURM}f() {{\nsrun ./a\n}}\nexport A=2\nf\n").settings["env"] == {"A": "2"}


@in_one_test(
    "index, word, values",
    [
        ("$((SLURM_ARRAY_TASK_ID * 2))", "", ["2", "6"]),
        ("$(( $SLURM_ARRAY_TASK_ID % N ))", "N=2", ["1", "1"]),
        ("${LR[$SLURM_ARRAY_TASK_ID]}", "LR=(0 0.1 'a\"b' 0.3)", ["0.1", "0.3"]),
        ("${LR[$((SLURM_ARRAY_TASK_ID - 1))]}", "LR=(x y z)", ["x", "z"]),
        ("${LR[I]}", "I=$((SLURM_ARRAY_TASK_ID - 1))\nLR=(x y z)", ["x", "z"]),
        ("$((2 * X))", 'X="$SLURM_ARRAY_TASK_ID + 1"', ["4", "8"]),
        ("$((2 * $X))", 'X="$SLURM_ARRAY_TASK_ID + 1"', ["3", "7"]),
        ("$X", "X=out/$((10 * SLURM_ARRAY_TASK_ID)).txt", ["out/10.txt", "out/30.txt"]),
    ],
)
def test_what_follows_from_the_index_is_computed_in_each_job(
    index: str, word: str, values: list[str]
) -> None:
    """Read by bash as a job of the array reads it, for two jobs."""
    body = f"#SBATCH --array=1-3\n{word}\nsrun echo {index}"
    assert "FILL_IN_WORD" not in to_do(body)
    for number, value in zip(("1", "3"), values, strict=True):
        run = ["bash", "-c", command(body).replace("exec echo", "echo")]
        got = subprocess.run(run, env={"HPCLAUNCH_ARRAY_INDEX": number}, capture_output=True, text=True)
        assert got.stdout.strip() == value


@in_one_test("table", ["LR=('a b' c)", "LR=($(cat file))", "LR=(a $X)"])
def test_a_table_that_cannot_be_read_is_named(table: str) -> None:
    found = to_do(f"#SBATCH --array=0-1\n{table}\nsrun ./a ${{LR[$SLURM_ARRAY_TASK_ID]}}")
    assert "line 4" in found
    assert "what follows from the index (line 5)" in found


def test_the_array_of_lsf_is_one() -> None:
    head = '#!/bin/bash\n#BSUB -J "a[1-4]"\n#BSUB -n 4\n#BSUB -W 10\n'
    assert "requests an array" not in to_do("mpirun ./a $LSB_JOBINDEX", head=head)


@in_one_test(
    "body, said",
    [
        ("srun ./a > r.txt\n./b r.txt", "line 3 has the output in r.txt, which line 4 reads"),
        ("srun ./a | tee -a r.txt\n./b r.txt", "line 3 has the output in r.txt, which line 4 reads"),
        ("srun -o r.%t ./a\npaste r.* > all", "line 3 has the output in r.%t, which line 4 reads"),
        ("srun -o r%t ./a\npaste x* > all", ""),
        ("#SBATCH -o run_%j.txt\nsrun ./a\n./b run_*", "line 3 has the output in run_%j.txt, which line 5"),
        ("srun ./a > r.json", "line 3 has the output in r.json, which looks like data"),
        ("srun ./a > result.txt", "line 3 has the output in result.txt, which looks like data"),
        ("srun ./a | tee energies.txt", "line 3 has the output in energies.txt, which looks like data"),
        ("srun ./a > train_log.txt", ""),
        ("srun ./a > stdout.txt", ""),
        ("srun ./a > Output.txt", ""),
        ("#SBATCH -o result.txt\nsrun ./a", ""),  # the log of the job
        ("srun ./a > logs/x.qlog", ""),
        ("srun ./a > logs/catalog.csv", "which looks like data"),
        ("srun ./a > r.log 2>&1", ""),
        ("srun ./a -o r.h5\n./b r.h5", ""),
        ("srun ./a 2> err.json", ""),
    ],
)
def test_a_file_of_the_output_that_is_needed_is_named(body: str, said: str) -> None:
    found = to_do(body)
    assert said in found if said else "has the output in" not in found


@in_one_test(
    "body, said",
    [
        ("export D=$PWD/data\ncd run\nsrun ./a", "folder: line 3: $PWD is the folder where the job is"),
        ("H=$(pwd)\ncd run\nsrun ./a $H/x", "folder: line 3: $PWD is the folder where the job is"),
        ("cd run\nsrun ./a $SLURM_SUBMIT_DIR/x", "folder: line 4: $PWD is the folder where the job is"),
        ("cd $SLURM_SUBMIT_DIR\nsrun ./a $PWD/x", ""),
        ("cd $SLURM_SUBMIT_DIR/\nsrun ./a $PWD/x", ""),
        ("cd run\nsrun ./a", ""),
    ],
)
def test_a_folder_that_is_left_is_named(body: str, said: str) -> None:
    found = to_do(body)
    assert said in found if said else "folder:" not in found


def test_the_lines_that_set_what_an_undecided_line_reads_are_named() -> None:
    assert "(what it reads: lines 3-4)" in to_do("A=/data\nOUT=$A/out\ncp x $OUT\nsrun ./a")
    assert "what it reads" not in to_do("A=1\ncp x y\nsrun ./a")
    assert "needs it (lines 3,5)" in to_do('C=$(ls c)\nif x; then\nR="-r $C"\nfi\nsrun ./a $R')


@in_one_test(
    "line, named",
    [
        ("export NCCL_P2P_DISABLE=1", True),
        ("export CUDA_HOME=/usr/local/cuda", True),
        ("export NODE_RANK=$SLURM_NODEID", True),
        ("export NCCL_SOCKET_IFNAME=ib0", False),
        ("export NCCL_DEBUG=INFO", False),
        ("export WORLD_SIZE=8", False),
        ("CUDA_HOME=/usr/local/cuda", False),
    ],
)
def test_a_variable_that_only_the_program_reads_and_nothing_sets_is_named(line: str, named: bool) -> None:
    assert ("line 3: " in to_do(f"{line}\nsrun ./a")) is named


@in_one_test(
    "line, said",
    [
        ("timeout 3500 srun ./a", "timeout 3500 before the launcher of line 3 is left out"),
        ("env A=1 srun ./a", "env A=1 before the launcher of line 3 is left out"),
        ("timeout 9 mpirun -n 8 ./a", "timeout 9 before the launcher of line 3 is left out"),
        ("time srun ./a", ""),
        ("srun timeout 3500 ./a", ""),
    ],
)
def test_words_before_the_launcher_are_named(line: str, said: str) -> None:
    found = to_do(line)
    assert said in found if said else "before the launcher" not in found


def test_an_option_with_several_variables_names_what_it_leaves_out() -> None:
    found = to_do("srun --export=ALL,LD_LIBRARY_PATH=/x,FOO=1 ./a")
    assert "env: LD_LIBRARY_PATH: the software of the other machine" in found


def test_a_constraint_that_each_node_here_meets_is_no_open_point() -> None:
    assert "line 3" not in to_do("#SBATCH -C gpu\nsrun ./a")
    assert "line 3" not in to_do("#SBATCH -C a100&gpu\nsrun ./a")
    assert "line 3: -C 80gb" in to_do("#SBATCH -C 80gb\nsrun ./a")
    assert "line 3: -C a100" in to_do("#SBATCH -C a100\nsrun ./a", "lumi-g")


def test_words_about_ray_that_are_printed_start_no_cluster() -> None:
    assert "framework" not in port(f"{SLURM}echo 'ray start'\nsrun ./a\n").settings
    assert port(f"{SLURM}ray start --head\npython a.py\n").settings["framework"] == "ray"


def test_ranks_that_need_more_gpus_than_a_node_has_are_named() -> None:
    body = "srun python a.py --tensor-model-parallel-size 8"
    assert "--tensor-model-parallel-size 8 of line 3 needs more ranks than the 4 GPUs" in to_do(body)
    assert "needs more ranks" not in to_do(body, "lumi-g")


def test_mail_that_nothing_can_send_is_named() -> None:
    assert "line 3: how PBS sends mail" in to_do("#SBATCH --mail-type=TIME_LIMIT_80\nsrun ./a")
    assert "mail" not in to_do("#SBATCH --mail-type=NONE\nsrun ./a")


def test_the_last_value_of_a_variable_holds() -> None:
    """Also where a shell reads the one and the job file has the other."""
    ported = port(f"{SLURM}export P=$PWD/a\nexport P=/b\nsrun ./a\n")
    assert (ported.settings["env"], ported.settings["command"]) == ({"P": "/b"}, ("./a",))
    ported = port(f"{SLURM}export P=/b\nexport P=$PWD/a:$P\nsrun ./a\n")
    assert "env" not in ported.settings
    assert ported.settings["command"][-1] == 'export P="$PWD/a:/b"\nexec ./a'


def test_torchrun_alone_starts_workers_on_one_node() -> None:
    ported = port(f"{SLURM}torchrun --nproc_per_node 4 a.py\n")
    assert (ported.settings["nodes"], ported.settings["tasks_per_node"]) == (1, 4)
    assert "nodes: the script requests 2, line 3 starts ranks on 1" in "\n".join(ported.to_do)
    for launch in ("srun torchrun", "torchrun --nnodes 2", "torchrun --nnodes $N"):
        assert port(f"{SLURM}{launch} --nproc_per_node 4 a.py\n").settings["nodes"] == 2


@in_one_test(
    "body, count",
    [
        ("test -d out || mkdir out\nsrun ./a", 1),
        ("srun ./a $SLURM_JOB_PARTITION", 1),
        ('L="torchrun --nproc_per_node 4 --nnodes 2"\nsrun bash -c "$L a.py"', 0),
        ("source a/conda.sh\nconda activate x\nsrun ./a", 1),
        ('eval "$(conda shell.bash hook)"\nconda activate x\nsrun ./a', 1),
    ],
)
def test_one_point_is_one_thing_to_do(body: str, count: int) -> None:
    said = [one for one in port(f"{SLURM}{body}\n").to_do if not one.startswith(("account", "time"))]
    assert len(said) == count, said


def test_paths_inside_of_words_are_named() -> None:
    found = to_do("export OPTS='--data /scratch/x'\nsrun ./a --in=a:/project/y,/project/z")
    assert "env OPTS: /scratch/x has to be a path" in found
    assert "command: /project/z has to be a path" in found


def test_a_file_that_the_text_of_a_shell_writes_is_named() -> None:
    assert "out.$SLURM_PROCID, which line 4 reads" in to_do("srun sh -c './a > out.$SLURM_PROCID'\n./b out.*")


@in_one_test(
    "options", ["--nproc_per_node=8", "--standalone --nproc_per_node=8", "--nnodes=1 --nproc_per_node=8"]
)
def test_trainings_apart_that_become_one_are_named(options: str) -> None:
    """Each node of srun has workers of its own, where torchrun is for one node."""
    texts = [f"{SLURM}{start} train.py\n" for start in (f"srun torchrun {options}", f"torchrun {options}")]
    apart, alone = ("\n".join(port(text).to_do) for text in texts)
    assert "nodes: line 3 starts the workers of one node on each of 2" in apart
    assert "on each of" not in alone
