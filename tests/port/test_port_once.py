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
