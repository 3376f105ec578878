"""Reasons of the report that say what becomes of a line, and near each a line with another reason."""

from __future__ import annotations

from hpclaunch.port.port_script import Ported
from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import checked_port

HEAD = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-node=4 -t 1:00:00\n#SBATCH --array=0-2\n"
STANDS = "its value stands in the command, the sizes or the variables that use it"
UNUSED = "only lines that are left out use it, or none"
CFG = 'declare -A CFG=([small]="--layers 12" ["big"]="--layers 48")\n'


def port(body: str, to: str = "lumi-g") -> Ported:
    return checked_port(f"{HEAD}{body}\n", to)


def said_of(ported: Ported, line: int) -> str:
    """The text in place of a line of the body, or why it is left out."""
    report = ported.report
    changed = [one.to for one in report.changed if one.line == line + 3]
    return "; ".join([*changed, *(one.why for one in report.left_out if one.line == line + 3)])


@in_one_test(
    "body, said",
    [
        ("L=(0.1 0.2 0.3)\nsrun python t.py --lr ${L[$SLURM_ARRAY_TASK_ID]}", STANDS),
        ('A=(--x 1)\nsrun python t.py "${A[@]}"', STANDS),
        ("D=big\nM=([small]=1 [big]=2)\nsrun python t.py ${M[$D]}", STANDS),
        ("L=(0.1 0.2)\nsrun python t.py --lr ${L[$SLURM_ARRAY_TASK_ID]} --seed $RANDOM", STANDS),
        ("R=run_$RANDOM\nsrun python t.py --out $R", "env FILL_IN_WORD_RANDOM=FILL_IN_WORD_RANDOM"),
        ("L=(0.1 0.2 0.3)\nsrun python t.py --lr 3", UNUSED),
        ("L=(0.1 0.2 0.3)\necho ${L[1]}\nsrun python t.py", UNUSED),
    ],
)
def test_an_array_of_which_the_command_has_items_stands_there(body: str, said: str) -> None:
    assert said_of(port(body), 1) == said


@in_one_test(
    "body, command",
    [
        (CFG + "SIZE=big\nsrun python t.py ${CFG[$SIZE]}", "python t.py --layers 48"),
        (CFG + "srun python t.py ${CFG[small]}", "python t.py --layers 12"),
        (CFG + 'SIZE=big\nsrun python t.py --a "${CFG[$SIZE]}"', "python t.py --a --layers 48"),
        (CFG + 'SIZE=big\nA=(--lr 1)\nA+=(${CFG[$SIZE]})\nsrun python t.py "${A[@]}"', "--lr 1 --layers 48"),
        (CFG + 'SIZE=big\nsrun bash -c "python t.py ${CFG[$SIZE]}"', "python t.py --layers 48"),
    ],
)
def test_an_item_by_a_key_that_is_known_is_read(body: str, command: str) -> None:
    ported = port(body)
    assert command in " ".join(ported.settings["command"])
    assert "env" not in ported.settings
    assert UNUSED not in said_of(ported, 1) + said_of(ported, 2)


@in_one_test(
    "body",
    [
        CFG + "SIZE=tiny\nsrun python t.py ${CFG[$SIZE]}",
        CFG + "SIZE=$1\nsrun python t.py ${CFG[$SIZE]}",
        CFG + "CFG[big]=--x\nsrun python t.py ${CFG[big]}",
        CFG + "if [ -e a ]; then CFG=([big]=1); fi\nsrun python t.py ${CFG[big]}",
        "declare -A CFG=([$A]=1 [big]=2)\nsrun python t.py ${CFG[big]}",
        "CFG=(1 [4]=2)\nsrun python t.py ${CFG[4]}",
    ],
)
def test_an_item_by_another_key_is_filled_in(body: str) -> None:
    assert "FILL_IN" in str(port(body).settings["env"])


def test_a_launcher_in_a_variable_is_taken_off_with_what_only_it_reads() -> None:
    launcher = 'L="torchrun --nproc_per_node 4 --nnodes $SLURM_NNODES --node_rank \\$SLURM_PROCID '
    launcher += '--master_addr $(cat master) --master_port 6000"\n'
    ported = port(launcher + 'srun --ntasks-per-node=1 bash -c "$L train.py --x 1"')
    assert "python train.py --x 1" in " ".join(ported.settings["command"])
    assert said_of(ported, 1) == "its program stands in the command"
    assert "is to be filled in" not in " ".join(ported.to_do)
    open_ = port('L="$(cat words)"\nsrun bash -c "$L train.py --x 1"')
    assert "is to be filled in" in " ".join(open_.to_do) or "FILL_IN" in str(open_.settings)


def test_a_here_document_is_no_output() -> None:
    for body in ("srun bash <<'EOF'\npython t.py\nEOF", "srun ./a <<< yes", "srun ./a <<EOF\nyes\nEOF"):
        assert "go to the job's log" not in str(port(body).report)
    assert ">a.log: stdout and stderr go to the job's log" in str(port("srun ./a > a.log").report)


@in_one_test(
    "body, named",
    [
        ("srun bash -c 'A=1 exec python t.py \"$@\"' _ --a 1", False),
        ("srun bash -c 'python t.py \"$@\"' _ --a $SLURM_JOB_ID", False),
        ("srun bash -c 'python t.py \"$1\"'", False),
        ('srun python t.py "$@"', True),
        ('srun bash -c "python t.py $1"', True),
        ("srun bash -c 'python t.py '\"$1\"", True),
        ("srun bash <<EOF\npython t.py $1\nEOF", True),
    ],
)
def test_the_arguments_of_a_text_are_not_those_of_the_script(body: str, named: bool) -> None:
    assert ("stands for the arguments of the script" in " ".join(port(body).to_do)) is named


def test_the_text_of_a_shell_with_arguments_is_looked_through() -> None:
    body = "srun bash -c 'export A=$SLURM_LOCALID; exec python t.py \"$@\"' _ --a 1"
    assert "$SLURM_LOCALID, which jobs on polaris do not have" in " ".join(port(body, "polaris").to_do)
    assert "SLURM_LOCALID" not in " ".join(port(body.replace("SLURM_LOCALID", "RANK"), "polaris").to_do)


def test_a_folder_that_is_left_behind_the_launch_is_nothing_to_do() -> None:
    ported = port("cd run\nsrun ./a\ncd ..\n")
    assert "takes the place of run" in " ".join(ported.to_do)
    assert ".." not in " ".join(ported.to_do)
    assert said_of(ported, 3) == "the launch of line 5 is over when the folder changes"
    loop = port("for d in a b; do\ncd $d\nsrun ./a\ncd ..\ndone")
    assert "takes the place of .." in " ".join(loop.to_do)
    assert "takes the place of .." in " ".join(port("cd ..\nsrun ./a").to_do)


def test_a_container_that_cannot_be_started_is_named_once() -> None:
    run = "srun singularity exec --nv -B /scratch/p1:/data -B /scratch/p2:/x my.sif python t.py"
    found = [text for text in port(run, "perlmutter").to_do if text.startswith("container: image")]
    (text,) = found
    assert "container: my.sif; container_bind: /scratch/p1:/data; container_bind: /scratch/p2:/x" in text
    assert "('" not in text


def test_jobs_to_wait_for_on_grid_engine_are_numbers_and_may_end_in_any_way() -> None:
    head = "#!/bin/bash\n#SBATCH -N 1 -t 10 -d {}:{}\nsrun ./a\n"
    ok, any_ = (checked_port(head.format(kind, 12), "abci") for kind in ("afterok", "afterany"))
    for ported, named in ((ok, True), (any_, False)):
        assert (ported.settings["after"], ported.settings["after_any"]) == (("12",), True)
        assert ("Grid Engine waits for any end of theirs" in "\n".join(ported.to_do)) is named
    assert "after_any" not in checked_port(head.format("afterok", 12), "polaris").settings
    assert "after" not in checked_port(head.format("afterok", "12:last"), "abci").settings


def test_memory_by_gpu_is_asked_for_where_a_job_requests_gpus() -> None:
    head = "#!/bin/bash\n#SBATCH -N 1 -n 1 -t 10 --gpus-per-node=2 --mem-per-gpu=124G\nsrun ./a\n"
    none = checked_port(head, "aws-parallelcluster")  # whose GPUs are no resource of the scheduler
    assert "directives" not in none.settings
    assert "--mem-per-gpu=124G" in "\n".join(none.to_do)
    assert checked_port(head, "generic-slurm").settings["directives"] == ("--mem-per-gpu=124G",)
