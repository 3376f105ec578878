"""The launch of a script: which one is the job's, and which sizes its words and the directives give."""

from __future__ import annotations

from hpclaunch.lint.batch_script import read_script
from hpclaunch.port.foreign_values import Values
from hpclaunch.port.port_launch import launches_of, main_launch, source_sizes
from hpclaunch.port.port_script import port_script
from hpclaunch.port.port_state import Port
from hpclaunch.scheduler.directive_reader import RequestedResources
from hpclaunch.scheduler.directive_readers import READERS
from tests.in_one_test import in_one_test
from tests.profiles import shipped

Sizes = tuple[int | None, int | None, int | None]


def port_of(text: str, source: str | None = None) -> Port:
    """A script as it is read, before anything is settled."""
    script = read_script(text)
    requested = script.reader.requested(script.components[0]) if script.reader else RequestedResources()
    words, target = READERS[script.kind or "slurm"], shipped("leonardo")
    return Port(
        script=script,
        source=shipped(source) if source else None,
        target=target,
        words=words,
        target_words=READERS["slurm"],
        requested=requested,
        faults={},
        values=Values(script, words, {}),
    )


def slurm(options: str, body: str) -> str:
    head = "".join(f"#SBATCH {option}\n" for option in options.split())
    return f"#!/bin/bash\n{head}{body}\n"


@in_one_test(
    "options, launch, nodes, ranks, gpus",
    [
        ("-N2 --ntasks-per-node=4", "srun ./a", 2, 8, None),
        ("--ntasks-per-node=4", "srun ./a", 1, 4, None),
        ("-n8", "srun ./a", None, 8, None),
        ("-n8 --ntasks-per-node=4", "srun ./a", 2, 8, None),
        ("-n9 --ntasks-per-node=4", "srun ./a", 3, 9, None),
        ("-N2 -n8", "srun -n 6 ./a", 2, 6, None),
        ("-N4 -n8", "srun -N 2 -n 6 ./a", 2, 6, None),
        ("-N2", "srun --ntasks-per-node=3 ./a", 2, 6, None),
        ("-N2", "srun ./a", 2, 2, None),  # one task on each node
        ("-t10", "srun ./a", None, 1, None),
        ("--gpus=4", "srun ./a", None, None, 4),  # on how many nodes they are is not said
        ("-N2", "mpiexec ./a", 2, None, None),  # how many it starts depends on the MPI
        ("-N2 -n4", "mpiexec ./a", 2, 4, None),
        ("-N2 -n4", "mpiexec -n $RANKS ./a", 2, None, None),
        ("-N2 -n4", "python a.py", 2, 1, None),
        ("-N2 -n4", "aprun ./a", 2, 1, None),
        ("-N2 --gpus-per-node=4", "srun ./a", 2, 2, 8),
        ("--gpus-per-node=4 -n4", "srun ./a", None, 4, 4),
        ("-N2 --gpus-per-node=4", "srun --gpus-per-node=2 ./a", 2, 2, 4),
        ("-n8 --gpus-per-task=2", "srun ./a", None, 8, 16),
        ("-N2 --gpus-per-node=4", "srun --gpus=3 ./a", 2, 2, 3),
    ],
)
def test_sizes_of_a_job_of_slurm(
    options: str, launch: str, nodes: int | None, ranks: int | None, gpus: int | None
) -> None:
    """As man sbatch and man srun say them."""
    port = port_of(slurm(options, launch))
    found = source_sizes(port, main_launch(port))
    assert (found.nodes, found.ranks, found.gpus) == (nodes, ranks, gpus)


def test_cores_of_a_rank_are_those_of_the_launch_else_of_the_directives() -> None:
    for launch, cpus in (("srun ./a", 7), ("srun -c 3 ./a", 3)):
        port = port_of(slurm("-n2 -c7", launch))
        assert source_sizes(port, main_launch(port)).cpus_per_rank == cpus
    port = port_of(slurm("-n2", "srun ./a"))
    assert source_sizes(port, main_launch(port)).cpus_per_rank is None
    assert source_sizes(port_of(slurm("-N2 -n6", "true")), None).ranks == 6, "without a launch"
    assert source_sizes(port_of(slurm("-N2", "true")), None).ranks is None


def test_gpus_that_no_line_requests_are_those_of_whole_nodes() -> None:
    """Polaris gives whole nodes of four GPUs; Betzy's have none; Slurm of LUMI-G gives those requested."""
    pbs = "#!/bin/bash\n#PBS -l select=2\nmpiexec -n 8 ./a\n"
    for text, source, gpus in (
        (pbs, "polaris", 8),
        (pbs, None, None),
        (slurm("-N2 -n8", "srun ./a"), "betzy", 0),
        (slurm("-N2 -n8", "srun ./a"), "lumi-g", None),
    ):
        port = port_of(text, source)
        assert source_sizes(port, main_launch(port)).gpus == gpus


@in_one_test(
    "body, programs",
    [
        ("srun ./a\nsrun ./b", ["./a", "./b"]),
        ("srun hostname\nsrun ./a", ["./a"]),
        ("srun nvidia-smi\nsrun ./a", ["./a"]),
        ("mpiexec --version\nmpiexec -n 2 ./a", ["./a"]),
        ("srun bash -c 'hostname; date'\nsrun ./a", ["./a"]),
        ("srun bash -c 'hostname; ./b'", ["bash"]),
        ("srun python -m venv env\nsrun python a.py", ["python"]),
        ("srun python -m pip install x\nsrun ./a", ["./a"]),
        ("srun ray start --head\nsrun ./a", ["./a"]),
        ("singularity pull a.sif docker://a\nsrun ./a", ["./a"]),
        ("srun singularity exec a.sif ldd ./a\nsrun ./b", ["./b"]),
        ("srun hostname", ["hostname"]),  # there is nothing else
        ("OUT=$(srun ./a)\necho $OUT", ["./a"]),
        ("OUT=$(srun hostname)\nsrun ./a", ["./a"]),
    ],
)
def test_launches_that_print_or_prepare_are_not_the_jobs(body: str, programs: list[str]) -> None:
    found = launches_of(port_of(slurm("-n2", body)))
    assert [one.program[0].visible for one in found] == programs


def test_of_several_launches_the_first_with_the_most_ranks_is_the_jobs() -> None:
    for lines, first in ((("-n 2 ./a", "-n 8 ./b", "-n 8 ./c"), 4), (("-n 4 ./a", "-n 2 ./b"), 3)):
        port = port_of(slurm("-n8", "\n".join(f"srun {line}" for line in lines)))
        launch = main_launch(port)
        assert launch is not None
        assert launch.line == first
    assert main_launch(port_of(slurm("-n8", "true"))) is None


def to_do(body: str, options: str = "-N1 -n2") -> str:
    ported = port_script(slurm(options, body), None, shipped("leonardo"))
    return "\n".join(ported.to_do)


def test_what_a_launch_reads_is_a_file_or_left_to_the_user() -> None:
    ported = port_script(slurm("-n2", "srun ./a < in.txt"), None, shipped("leonardo"))
    assert ported.settings["command"][:2] == ("bash", "-c")
    assert "< in.txt" in ported.settings["command"][2]
    assert "known at run time only" in to_do("srun ./a < $(ls | head -1)")
    assert "reads what another command prints: write it to a file" in to_do("cat x | srun ./a")
    assert "gives the program a text as stdin" in to_do("srun ./a <<END\nx\nEND")
    assert "<in.txt> of line 4 is a placeholder: fill it in" in to_do("srun ./a <in.txt>")
    assert "<input> is a placeholder of the script: fill it in" in to_do("srun ./a <input>")
    assert "stdin" not in to_do("srun ./a > out.txt 2> err.txt")
    assert "stdin" not in to_do("srun bash -s <<END\n./a\nEND")


def test_a_launch_in_a_block_is_started_once_and_that_is_said() -> None:
    assert "in any case" in to_do("if [ -e x ]; then\nsrun ./a\nfi")
    assert "in any case" in to_do("test -e x || srun ./a")
    assert "in any case" not in to_do("test -e x && true\nsrun ./a")


def test_a_program_that_mpirun_finds_in_the_jobs_folder_gets_its_path() -> None:
    for body, command in (
        ("mpicc a.c\nmpirun -n 2 a.out", ("./a.out",)),
        ("mpicc -o solver a.c\nmpirun -n 2 solver", ("./solver",)),
        ("cp /x/solver .\nmpirun -n 2 solver", ("solver",)),
        ("mpirun -n 2 solver", ("solver",)),
        ("mpicc -o solver a.c\nsrun solver", ("solver",)),
        ("mpicc -o b/solver a.c\nmpirun -n 2 b/solver", ("b/solver",)),
    ):
        ported = port_script(slurm("-n2", body), None, shipped("leonardo"))
        assert ported.settings["command"] == command, body
