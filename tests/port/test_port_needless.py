"""Things to do that no person is needed for, and near them those that are."""

from __future__ import annotations

from hpclaunch.port.port_script import Ported, port_script
from hpclaunch.port.port_text import rendered_port
from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import check_report
from tests.profiles import shipped

SLURM = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-node=4 -t 10\n"


def port(body: str, to: str = "polaris", source: str | None = None, head: str = SLURM) -> Ported:
    target, text = shipped(to), f"{head}{body}\n"
    ported, _ = rendered_port(port_script(text, shipped(source) if source else None, target), target)
    check_report(text, ported)
    return ported


def to_do(body: str, to: str = "polaris", source: str | None = None, head: str = SLURM) -> str:
    return "\n".join(port(body, to, source, head).to_do)


def test_paths_of_a_container_are_named_on_another_machine_alone() -> None:
    line = "srun singularity exec -B /scratch/p:/data my.sif python a.py"
    assert "container_bind: /scratch/p:/data has to be a path on lumi-g" in to_do(line, "lumi-g")
    assert "container: my.sif has to be on lumi-g" in to_do(line, "lumi-g")
    head = "#!/bin/bash\n#SBATCH -A project_465000001 -p standard-g -N 2\n#SBATCH --ntasks-per-node=8 -t 10\n"
    assert "container" not in to_do(line, "lumi-g", "lumi-g", head)


def test_mounts_of_a_directive_are_those_of_the_launch() -> None:
    head = f"{SLURM}#SBATCH --container-image=my.sif --container-mounts=/a:/b:ro,/c:/d\n"
    assert port("srun python a.py", head=head).settings["container_bind"] == ("/a:/b", "/c:/d")
    other = f"{SLURM}#SBATCH --container-workdir=/a\n"
    assert "--container-workdir=/a: port does not know" in to_do("srun python a.py", head=other)


def test_a_placeholder_is_named_once() -> None:
    assert to_do("srun ./a <options>").count("<options>") == 1


@in_one_test(
    "line, to, named",
    [
        ("export PAMI_IBV_ENABLE_OOO_AR=0", "polaris", False),
        ("export MV2_USE_CUDA=1", "olivia", False),
        ("export OMPI_MCA_btl=tcp", "olivia", True),
        ("export FI_CXI_ATS=0", "olivia", True),
        ("export http_proxy=http://proxy:80", "olivia", False),
        ("export CUDA_DEVICE_MAX_CONNECTIONS=1", "lumi-g", False),
        ("export MIOPEN_USER_DB_PATH=/tmp/$SLURM_JOB_ID", "polaris", False),
        ("export PYTORCH_HIP_ALLOC_CONF=x", "polaris", True),
        ("export DATA_DEVICE=cuda", "lumi-g", True),
        ('export PYTHONPATH="./:${PYTHONPATH:-}"', "lumi-g", False),
        ('export DATA="${DATA:-x}"', "lumi-g", True),
    ],
)
def test_a_variable_that_nothing_here_reads_is_no_task(line: str, to: str, named: bool) -> None:
    said = to_do(f"{line}\nsrun python a.py $PYTHONPATH $DATA", to).replace("env DATA: FILL_IN_DATA", "")
    name = line.removeprefix("export ").partition("=")[0]
    assert any(text in said for text in ("line 3", f"env {name}:", f"reads {name}", f"{name} is of")) is named


@in_one_test(
    "head, said",
    [
        ("#PBS -W group_list=gi16\n", ""),
        ("#PBS -W depend=afterok:$ID\n", "line 3: -W depend=afterok:$ID cannot be said"),
        ("#PBS -W umask=0022\n", "line 3: -W umask=0022 cannot be said"),
    ],
)
def test_the_group_of_a_job_of_pbs_is_no_job_to_wait_for(head: str, said: str) -> None:
    found = to_do("cd $PBS_O_WORKDIR\nmpiexec ./a", head=f"#!/bin/bash\n#PBS -l select=1:mpiprocs=4\n{head}")
    assert said in found
    assert ("line 3" in found) is bool(said)


def test_conditions_around_what_is_left_out_are_no_task() -> None:
    assert "line 3: a job file has no place for it" in to_do("[ -d /opt/m ] && cp x y\nsrun ./a")
    assert "line 3: a condition" in to_do("if (( N > 1 )); then\ncp x y\nfi\nsrun ./a")


def test_what_reads_a_value_to_fill_in_reads_it_by_its_name() -> None:
    ported = port('D=$(./where)\nexport BASE="$D/base"\nexport OTHER=$(./x)\nsrun ./a $D')
    assert 'export BASE="${D}/base"' in ported.settings["command"][2]
    assert "the value of BASE" not in str(ported.to_do)
    assert "the value of C is computed" in to_do("export C=$(./x)\nsrun ./a --y $(./z)")
    assert "line 5: the value of OTHER is computed" in str(ported.to_do)


def test_a_name_that_begins_as_another_thing_is_none() -> None:
    assert "conda is of" not in to_do("srun conda-python -u a.py")
    assert "TBG" not in to_do("srun ./TBG_LMC.out")
    assert "TBG_dataPath is a placeholder" in to_do("srun ./a !TBG_dataPath")


def test_nodes_that_no_queue_takes_and_unread_gpus_are_named_once() -> None:
    head = "#!/bin/bash\n#SBATCH -N 32 --ntasks-per-node=4 --gpus-per-node=4 -t 1:00:00\n"
    assert to_do("srun ./a", "olivia", head=head).count("takes 32 nodes") == 1
    said = to_do("python a.py", head="#$ -l gpu=true -cwd -l h_rt=1:0:0\n")
    assert (said.count("GPUs:"), "true of" in said) == (1, False)


def test_a_file_that_holds_both_outputs_of_the_program_is_named() -> None:
    body = "srun ./a >& run.dat"
    assert "line 3 has the output in run.dat, which looks like data" in to_do(body)
    assert "has the output" not in to_do("srun ./a >&2")


@in_one_test(
    "count",
    [
        'wc -l $PBS_NODEFILE | cut -f1 -d" "',
        "wc -l < $PBS_NODEFILE",
        'wc -l $PBS_NODEFILE | cut -d" " -f1',
        "cat $PBS_NODEFILE | sed -n $=",
    ],
)
def test_lines_of_the_file_of_nodes_are_ranks(count: str) -> None:
    head = "#!/bin/bash\n#PBS -l select=4:ncpus=36:mpiprocs=2\n#PBS -l walltime=1:0:0\n"
    ported = port(f"cd $PBS_O_WORKDIR\nN=`{count}`\nmpiexec -np $N ./a", head=head)
    assert ported.settings["nodes"] * ported.settings["tasks_per_node"] == 8
    assert "ranks:" not in str(ported.to_do)


def test_the_name_of_the_job_is_known() -> None:
    ported = port("export OUT=runs/$SLURM_JOB_NAME\nsrun ./a", head=f"{SLURM}#SBATCH -J big\n")
    assert ported.settings["env"]["OUT"] == "runs/big"
    assert "SLURM_JOB_NAME" in to_do("srun ./a $SLURM_JOB_NAME")  # the name of the script's file


def test_nodes_times_their_gpus_are_the_ranks_here() -> None:
    """On polaris the 16 GPUs of two nodes are those of four."""
    head = "#!/bin/bash\n#SBATCH -N 2 --gpus-per-node=8 -t 10\n"
    body = "N=$((SLURM_NNODES * 8))\nexport EACH=$((1024 / N)) TWO=$((SLURM_NNODES * 2))\n"
    body += "srun -n $N ./a --all $N"
    settings = port(body, head=head).settings
    assert (settings["nodes"], settings["env"], settings["command"][-1]) == (
        4,
        {"EACH": "64", "TWO": "8"},
        "16",
    )
    one = head.replace("-N 2", "-N 1 --ntasks-per-node=8")
    said = port("N=$((SLURM_NTASKS_PER_NODE * 1))\nsrun ./a $N", head=one)
    assert said.settings["command"][-1] == "4"


def test_words_that_a_condition_adds_are_named_and_the_others_stay() -> None:
    body = 'A="--x 1"\nif [ -n "$R" ]; then\nA="$A --resume $R"\nfi\nsrun ./a $A'
    ported = port(body)
    assert ported.settings["command"] == ("./a", "--x", "1")
    assert "the words of line 5, which a condition or a loop adds, are left out" in "\n".join(ported.to_do)
    other = body.replace('"$A --resume $R"', '"--resume $R"')
    assert "env A: FILL_IN_A" in to_do(other)


def test_a_whole_command_to_which_a_condition_adds_is_the_launch() -> None:
    body = 'CMD="torchrun --nproc_per_node=4 --master_addr=$(hostname) a.py --x"\n'
    body += '[ -n "$R" ] && CMD="$CMD --y"\n$CMD'
    head = "#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=4 -t 10\n"
    ported = port(body, head=head)
    assert (ported.settings["command"], ported.settings["tasks_per_node"]) == (("python", "a.py", "--x"), 4)
    assert "the words of line 4" in "\n".join(ported.to_do)
    by_index = 'L="python a.py --port $((6000 + SLURM_ARRAY_TASK_ID)) --y"\n$L --x'
    command = port(by_index, head=f"{head}#SBATCH --array=1-3\n").settings["command"]
    assert command[2] == 'exec python a.py --port "$((6000 + $HPCLAUNCH_ARRAY_INDEX))" --y --x'
    items = 'A=(a b c)\nL="python a.py ${A[$SLURM_ARRAY_TASK_ID]} $X"\n$L'
    said = to_do(items, head=f"{head}#SBATCH --array=0-2\n")
    assert "env X: FILL_IN_X" in said
    assert "env items" not in said


@in_one_test(
    "body, to, text, named",
    [
        ("#SBATCH --mem=5G\nsrun ./a", "isambard-ai", "have they this memory", False),  # of 288 cores
        ("#SBATCH --mem=900G\nsrun ./a", "isambard-ai", "have they this memory", True),
        ("{ export A=1; srun ./a; } > a.log", "polaris", "condition or a loop", False),
        ("(time srun ./a) 2>&1", "polaris", "condition or a loop", False),
        ("if true; then srun ./a; fi", "polaris", "condition or a loop", True),
        ("for i in 1 2; do { srun ./a; }; done", "polaris", "condition or a loop", True),
        ("{ export A=1; }\nsrun ./a", "polaris", "value of A is computed", False),
        ("( export A=1; ./b )\nsrun ./a", "polaris", "value of A is computed", True),  # ./a does not see it
        ("PATH=${CONDA_PREFIX}/bin:$PATH\nsrun ./a", "polaris", "PATH", False),
        ("PATH=/opt/tool/bin:$PATH\nsrun ./a", "polaris", "PATH", True),
        ("srun shifter --image=a:b --module=gpu,mpich ./a", "polaris", "--module", False),
        ("srun shifter --image=a:b --module=cvmfs ./a", "polaris", "--module=cvmfs", True),
        ("mkdir -p out\nsrun ./a", "polaris", "line 3: it makes folders", True),
        ("srun ./a > results_4", "polaris", "which looks like data", True),
        ("srun ./a > results.log", "polaris", "which looks like data", False),
    ],
)
def test_what_holds_here_as_it_is_is_no_task(body: str, to: str, text: str, named: bool) -> None:
    assert (text in to_do(body, to)) == named


def test_one_of_everything_is_no_other_size() -> None:
    head = "#!/bin/bash\n#SBATCH -n 1 --gpus=1 -t 10\n"
    assert "was a size" not in to_do("python a.py trainer.devices=1", head=head)
    assert "trainer.devices 2 of line 3 was a size" in to_do("python a.py trainer.devices=2", head=head)


def test_gpus_are_settled_where_a_node_has_one_for_each_rank() -> None:
    head = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 -t 10\n"
    assert "speak of some" not in to_do("echo GPU\nsrun ./a", "polaris", head=head)
    assert "speak of some" in to_do("echo GPU\nsrun ./a", "lumi-g", head=head)


def test_a_ray_cluster_of_the_scripts_own_is_one_task() -> None:
    head = "#!/bin/bash\n#SBATCH -N 4 --ntasks-per-node=1 --gpus-per-node=8 -t 10\nexport NNODES=4\n"
    body = "for n in a b; do\n  srun -N 1 -n 1 -w $n /opt/env/bin/ray start --block &\ndone\npython a.py"
    ported = port(body, "lumi-g", head=head)
    assert ported.settings["nodes"] == 4
    said = "\n".join(ported.to_do)
    assert "must have what line 5 sets up, /opt/env/bin/ray" in said
    assert not [text for text in ("a loop", "one launch", "NNODES") if text in said]
    assert "NNODES: 4 was a size" in "\n".join(port(body, "polaris", head=head).to_do)
