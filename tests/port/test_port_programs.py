"""A program that port does not read: the GPUs that its ranks see, and the variables that it may look for."""

from __future__ import annotations

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.port.port_script import Ported, port_script
from hpclaunch.port.port_text import rendered_port
from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import check_report
from tests.profiles import shipped

SLURM = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-node=4 -t 10\n"
LSF = "#!/bin/bash\n#BSUB -nnodes 2 -W 10\n"
PBS = "#!/bin/bash\n#PBS -l select=2:ncpus=8:mpiprocs=8,walltime=0:10:00\ncd $PBS_O_WORKDIR\n"


def port(text: str, to: str = "polaris") -> Ported:
    target = shipped(to)
    ported, script = rendered_port(port_script(text, None, target), target)
    check_report(text, ported)
    one = 'export CUDA_VISIBLE_DEVICES="${gpus[' in script or "CUDA_VISIBLE_DEVICES=${" in script
    assert one or ported.settings.get("framework") != "none"
    return ported


@in_one_test(
    "body, alone",
    [
        ("srun --gpus-per-task=1 ./a", True),
        ("#SBATCH --gpus-per-task=1\nsrun ./a", True),
        ("srun --gpu-bind=single:1 ./a", True),
        ("srun --gpu-bind=verbose,map_gpu:0,1,2,3 ./a", True),
        ("srun --gpus-per-task=1 --gpu-bind=none ./a", False),  # all of the node, as the script has it
        ("srun --gpu-bind=closest ./a", False),
        ("srun ./a", False),
        ("srun --gpus-per-task=1 torchrun a.py", False),  # whose workers number the GPUs
        ("srun ./set_affinity_gpu_polaris.sh ./a", True),
        ("srun ./set_affinity_cpu.sh ./a", False),
        ("srun bash -c 'export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID; exec ./a'", True),
        ("srun bash -c 'export CUDA_VISIBLE_DEVICES=0,1,2,3; exec ./a'", False),
    ],
)
def test_ranks_that_saw_their_own_gpus_alone_do_so_here(body: str, alone: bool) -> None:
    ported = port(f"{SLURM}{body}\n")
    assert (ported.settings.get("framework") == "none") == alone, ported.settings


@in_one_test(
    "options, alone",
    [
        ("-n 8 -g 1 -c 7 -r 4", True),
        ("-n 8 -a 1 -g 1 -r 4", True),
        ("-n 2 -a 4 -g 4 -r 1", False),  # the ranks of a resource set see all its GPUs
        ("-n 8 -c 7 -r 4", False),
    ],
)
def test_ranks_of_resource_sets_see_those_of_their_set(options: str, alone: bool) -> None:
    ported = port(f"{LSF}jsrun {options} ./a\n")
    assert (ported.settings.get("framework") == "none") == alone, ported.settings


def test_of_a_program_that_may_number_its_gpu_this_is_asked() -> None:
    for program in ("python a.py", "./run.sh", "uv run python a.py"):
        ported = port(f"{SLURM}srun --gpus-per-task=1 {program}\n")
        assert "framework" not in ported.settings
        assert "if the program takes number 0, set framework: none" in "\n".join(ported.to_do), program
    one = "#!/bin/bash\n#SBATCH -n 1 --gpus-per-task=1 -t 10\nsrun python a.py\n"
    assert "framework: none" not in "\n".join(port(one).to_do)  # a rank alone takes the first in any case


def test_what_lets_mpi_send_from_gpus_is_that_of_the_mpi_here() -> None:
    name = "MPICH_GPU_SUPPORT_ENABLED"
    body = f'{LSF}jsrun --smpiargs="-gpu" -n 8 -g 1 -r 4 ./a\n'
    for site in ("polaris", "lumi-g"):
        ported = port_script(body, None, shipped(site))
        assert ported.settings["env"] == {name: "1"}
    alps = port_script(body, None, shipped("daint"))  # whose profile sets it to 0, with the reason
    assert name not in alps.settings.get("env", {})
    other = port_script(body, None, shipped("olivia"))
    for ported in (alps, other):
        assert "smpiargs -gpu lets MPI send from GPUs: see that the MPI" in "\n".join(ported.to_do)
    without = port_script(body.replace("-gpu", "-async"), None, shipped("polaris"))
    assert name not in without.settings.get("env", {})
    for line in (f"export {name}=1", "export MPICH_RDMA_ENABLED_CUDA=1"):
        assert port(f"{SLURM}{line}\nsrun ./a\n").settings["env"] == {name: "1"}
    assert name not in port(f"{SLURM}export {name}=0\nsrun ./a\n").settings.get("env", {})


@in_one_test(
    "text, to, names",
    [
        (f"{SLURM}srun python a.py\n", "polaris", "SLURM_PROCID, or by"),
        (f"{PBS}mpiexec -n 16 ./a\n", "lumi-g", "OMPI_COMM_WORLD_RANK, PMI_RANK, or by"),
        (f"{LSF}jsrun -n 8 -r 4 ./a\n", "lumi-g", "JSM_NAMESPACE_RANK, PMIX_RANK, or by"),
        (f"{SLURM}srun python a.py\n", "lumi-g", ""),
        (f"{SLURM}srun torchrun --nproc_per_node=4 a.py\n", "polaris", ""),  # by RANK
        (f"{PBS}mpiexec -n 1 ./a\n", "lumi-g", ""),  # one rank finds nobody
        (f"{PBS}python a.py\n", "lumi-g", ""),
    ],
)
def test_variables_of_ranks_are_said_where_the_launcher_is_another(text: str, to: str, names: str) -> None:
    said = [note for note in port(text, to).notes if note.startswith("ranks: a program that reads")]
    assert len(said) == bool(names), said
    assert names in "".join(said)


def test_an_index_that_no_line_reads_is_said_where_the_scheduler_is_another() -> None:
    text = "#!/bin/bash\n#SBATCH -n 1 -t 10 --array=1-3\npython a.py\n"
    read = text.replace("a.py", "a.py $SLURM_ARRAY_TASK_ID")
    said = "a program that reads SLURM_ARRAY_TASK_ID itself has to read HPCLAUNCH_ARRAY_INDEX"
    assert said in "\n".join(port(text).notes)
    for other, to in ((text, "lumi-g"), (read, "polaris"), (text.replace(" --array=1-3", ""), "polaris")):
        assert "array: no line reads" not in "\n".join(port(other, to).notes)


def test_fewer_cores_by_a_gpu_are_said() -> None:
    text = "#!/bin/bash\n#SBATCH -n 1 -c 10 --gpus=1 -t 10\nsrun python a.py\n"
    for to, cores in (("lumi-g", 7), ("polaris", 8)):
        assert f"cores: a rank has 10 in the script (hardware threads, if they count there), and {cores}" in (
            "\n".join(port(text, to).notes)
        )
    assert "cores: a rank" not in "\n".join(port(text.replace("-c 10", "-c 7")).notes)


@in_one_test(
    "head, body, ranks",
    [
        ("#BSUB -n 4", "for D in 1 2; do\n  /opt/jdk/bin/java -jar T.jar $D\ndone", 1),
        ("#BSUB -n 4", "source settings.sh\nrun_all", 1),
        ("#BSUB -n 4", "run_all -np 4", 4),  # which may start them
        ("#BSUB -n 4", "mpirun ./a", 4),
        ("#SBATCH -n 4", "for D in 1 2; do\n  python a.py $D\ndone", 1),
        ("#SBATCH -N 2 -n 4", "run_all", 4),
    ],
)
def test_slots_of_a_script_that_starts_no_ranks_are_for_threads(head: str, body: str, ranks: int) -> None:
    ported = port(f"#!/bin/bash\n{head} {'-W' if 'BSUB' in head else '-t'} 10\n{body}\n", "lumi-g")
    found = ported.settings.get("nodes", 1) * ported.settings.get("tasks_per_node", 1)
    assert found == ranks, ported.settings


@in_one_test(
    "head, to, directives",
    [
        ("#PBS -M a@b.c", "lumi-g", ("--mail-type=FAIL", "--mail-user=a@b.c")),
        ("#PBS -M a@b.c\n#PBS -m e", "lumi-g", ("--mail-type=END", "--mail-user=a@b.c")),
        ("#PBS -M a@b.c\n#PBS -m n", "lumi-g", None),
        ("#SBATCH --mail-user=a@b.c", "polaris", None),  # PBS would send of an abort
        ("#SBATCH --mail-user=a@b.c --mail-type=FAIL", "polaris", ("-m a", "-M a@b.c")),
        ("#$ -M a@b.c", "lumi-g", None),  # -m n is Grid Engine's default
        ("#BSUB -u a@b.c", "lumi-g", ("--mail-type=END", "--mail-user=a@b.c")),
        ("#BSUB -u a@b.c\n#BSUB -o out.txt", "lumi-g", None),
    ],
)
def test_mail_is_that_of_the_scheduler_by_default(head: str, to: str, directives: object) -> None:
    ported = port_script(f"#!/bin/bash\n{head}\n./a\n", None, shipped(to))
    assert ported.settings.get("directives") == directives
    if directives is None:
        assert "it requests no mail" in str(ported.report.left_out)


@in_one_test(
    "word, becomes",
    [
        ("${A%.txt}", "dir/one_two.tar"),
        ("${A%%.*}", "dir/one_two"),
        ("${A##*/}", "one_two.tar.txt"),
        ("${A#*/}", "one_two.tar.txt"),
        ("${A//_/-}", "dir/one-two.tar.txt"),
        ("${A/t/T}", "dir/one_Two.tar.txt"),
        ("${A%.png}", "dir/one_two.tar.txt"),
        ("${A%?xt}", "dir/one_two.tar."),
    ],
)
def test_a_part_of_a_value_is_read(word: str, becomes: str) -> None:
    ported = port(f"{SLURM}A=dir/one_two.tar.txt\nsrun ./a {word}\n")
    assert ported.settings["command"] == ("./a", becomes)


def test_a_part_of_what_the_job_knows_is_left_to_its_shell() -> None:
    assert (
        "${HPCLAUNCH_JOB_ID%%.*}"
        in port(f"{PBS}mpiexec -n 16 ./a ${{PBS_JOBID%%.*}}\n").settings["command"][-1]
    )
    assert "FILL_IN" in str(port(f"{SLURM}A=$(./b)\nsrun ./a ${{A%.txt}}\n").settings)


def test_a_script_that_only_submits_others_is_no_job() -> None:
    text = "#!/bin/bash\nA=$(sbatch --parsable train.sh)\nsbatch -d afterok:$A jobs/eval.slurm\n"
    with pytest.raises(BadInputError, match="lines 2-3: this script starts no program") as raised:
        port(text)
    assert "train.sh, jobs/eval.slurm" in str(raised.value.hint)
    assert "line 3" in "\n".join(port(f"{SLURM}sbatch next.sh\nsrun ./a\n").to_do)
    assert port("#!/bin/bash\npython a.py\nsbatch next.sh\n").settings["command"] == ("python", "a.py")


@in_one_test(
    "body, command",
    [
        ("module load fastqc\ncd x\nfastqc a.fq.gz b.fq.gz", "fastqc a.fq.gz b.fq.gz"),
        ("mkdir -p out\ndate\ntime vasp_std\nmv a out", "vasp_std"),
        ("for f in *.fq; do\n  fastqc $f\ndone", "fastqc"),
        ("fastqc a\n./b", "./b"),  # a program by its path is one in any case
        ("bwa mem a b\nsamtools sort b", ""),  # two
        ("prepare() {\n  mkdir a\n}\nprepare", ""),
        ("X=$(fastqc a)\necho $X", ""),
        ("if fastqc a; then\n  echo b\nfi", ""),
        ("gzip a\nulimit -s unlimited\nrsync a b", ""),
    ],
)
def test_the_one_command_that_is_no_part_of_the_shell_is_the_program(body: str, command: str) -> None:
    ported = port(f"#!/bin/bash\n#SBATCH -n 1 -c 4 -t 10\n{body}\n")
    words = " ".join(ported.settings["command"]).removeprefix("bash -c exec ")
    assert words.startswith(command or "FILL_IN_PROGRAM")
    assert (ported.settings["nodes"], ported.settings["tasks_per_node"]) == (1, 1)
    assert not command or "FILL_IN_PROGRAM" not in "\n".join(ported.to_do)


@in_one_test(
    "wrapper",
    ["pipenv run", "poetry run", "uv run", "pdm run", "hatch run", "conda run -n a", "micromamba run -n a"],
)
def test_torchrun_in_an_environment_is_a_launch_and_the_environment_is_named(wrapper: str) -> None:
    ported = port(f"{SLURM}srun {wrapper} torchrun --nnodes 2 --nproc_per_node 4 --rdzv_id 3 a.py\n")
    assert ported.settings["command"] == (*wrapper.split(), "python", "a.py")
    assert (ported.settings["nodes"], ported.settings["tasks_per_node"]) == (2, 4)
    name = " ".join(wrapper.split()[:2])
    assert f"environment: {name} of the command brings a Python environment" in "\n".join(ported.to_do)
    assert "start processes" not in "\n".join(ported.to_do)


def test_threads_by_another_variable_are_those_of_openmp_here() -> None:
    """MKL and OpenBLAS go by OMP_NUM_THREADS where theirs is not set, and the script sets that alone."""
    lines = "export MKL_NUM_THREADS=$SLURM_CPUS_PER_TASK\nexport OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n"
    ported = port(f"#!/bin/bash\n#SBATCH -n 1 -c 8 --gpus=1 -t 10\n{lines}srun python a.py\n")
    mkl, omp = (one.to for one in ported.report.changed if one.text.startswith("export "))
    assert mkl == "OMP_NUM_THREADS: the cores of each rank, which is read where MKL_NUM_THREADS is not set"
    assert omp == "OMP_NUM_THREADS: the cores of each rank"
