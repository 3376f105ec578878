"""One thing to do for one thing, with the advice that fits it, and near it what is another thing."""

from __future__ import annotations

from tests.in_one_test import in_one_test
from tests.port.test_port_lines import port

HEAD = "#!/bin/bash\n#SBATCH -N 1 -n 4 --gpus-per-node=4 -t 10\n"
CHAIN = "it submits a job: port the script that it names, too, and submit that with --after ID"


def to_do(body: str, to: str = "olivia", head: str = HEAD) -> str:
    return "\n".join(port(f"{head}{body}\n", source=None, to=to).to_do)


@in_one_test(
    "body, at",
    [
        ("srun ./a\nsbatch $0", "line 4: "),
        ("srun ./a\nsbatch prod.slurm", "line 4: "),
        ("srun ./a\n[ -e end ] || qsub -W x=y next.pbs", "line 4: "),
        ("ID=$(sbatch --parsable next.sh)\nsrun ./a", "line 3: "),
        ("again() {\n  sbatch -J $1 $2\n}\nsrun ./a\nagain x $0", "lines 4,7: "),
    ],
)
def test_a_job_that_submits_the_next_one_is_told_as_a_chain(body: str, at: str) -> None:
    assert f"{at}{CHAIN}" in to_do(body)
    assert "run it on olivia before" not in to_do(body)


@in_one_test(
    "body, said",
    [
        ("srun ./a\n./sbatch_all.sh", "line 4: a job file has no place"),
        ("srun ./a\nmv sbatch.log old", "a job file has no place for it: run it on olivia before"),
        ("f() {\n  mv a $1\n}\nsrun ./a\nf b", "lines 4,7: a job file has no place"),
        ("f() {\n  mv a b\n}\ng() {\n  sbatch c\n}\nsrun ./a\nf", "lines 4,10: a job file has no place"),
    ],
)
def test_what_submits_nothing_is_no_chain(body: str, said: str) -> None:
    assert said in to_do(body)


@in_one_test(
    "body, named",
    [
        ("mkdir -p $HOME/run\ncd $HOME/run\nsrun ./a", False),
        ("D=out/$SLURM_JOB_ID\nmkdir -p $D\ncd $D\nsrun ./a", False),
        ("#SBATCH -o logs/%j.out -e logs/%j.err\nmkdir -p logs\nsrun ./a", False),
        ("#SBATCH -o /scratch/p/logs/%j.out\nmkdir -p /scratch/p/logs/\nsrun ./a", False),
        ("mkdir -p run results\ncd run\nsrun ./a", True),
        ("#SBATCH -o logs/%j.out\nmkdir -p logs\nsrun ./a --logdir logs", True),
        ("#SBATCH -o logs/%j.out\nmkdir -p logs\nsrun ./a\nmv x.dat logs/", True),
        ("#SBATCH -o %j.out\nmkdir -p out\nsrun ./a", True),
        ("mkdir -p run\ncd run/sub\nsrun ./a", True),
    ],
)
def test_a_folder_that_another_line_names_is_named_once(body: str, named: bool) -> None:
    assert ("it makes folders" in to_do(body)) is named


@in_one_test(
    "value, inner",
    [
        ("`free-gpu`", ""),
        ("$(./pick)", ""),
        ("$(cp a b; ./c)", "it runs cp"),
        ("$(mv a b; ./c)", "it runs mv"),
    ],
)
def test_a_value_to_fill_in_and_what_computes_it_are_one_thing(value: str, inner: str) -> None:
    said = to_do(f"device={value}\nsrun python a.py $device")
    assert "env device: FILL_IN_device: the command needs it (line 3)" in said
    assert ("line 3: it runs" in said) is bool(inner)
    assert inner in said
    assert "line 3: it runs ./log" in to_do("unused=$(./log)\nsrun python a.py")


@in_one_test(
    "value, named",
    [
        ("/mnt/sw/cuda-11.8.0/bin/nvcc", False),
        ("/opt/x/cuda/lib:/opt/y/nvidia/lib", False),
        ("cuda", True),
        ("'--device cuda --to /scratch/p/x'", True),
        ("lib/cuda/a", True),
    ],
)
def test_a_path_of_another_machine_is_named_as_a_path_alone(value: str, named: bool) -> None:
    said = to_do(f"export NVIDIA_TOOL={value}\nsrun python a.py", "lumi-g")
    assert ("is of nvidia" in said) is named
    assert ("has to be a path on lumi-g" in said) is ("/" in value and value != "lib/cuda/a")
