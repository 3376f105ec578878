"""Facts that port states about the new job: GPUs that it reserves without a rank, and cores of a rank."""

from __future__ import annotations

import msgspec

from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import checked_port as port
from tests.port.fixture_scripts import rendered


def facts(text: str, to: str = "lumi-g", source: str | None = None) -> str:
    return "\n".join(port(text, to, source).notes)


ONE = "#!/bin/bash\n#SBATCH --ntasks=1 --gpus=1 --time=0:15:00\npython main.py\n"
PBS = "#!/bin/bash\n#PBS -l select=1:ncpus=1:ngpus=1:mem=32GB\n#PBS -l walltime=3:00:00\npython main.py\n"
LSF = (
    '#!/bin/bash\n#BSUB -gpu "num=1"\n#BSUB -n 8\n#BSUB -R "rusage[mem=64000]"\n#BSUB -W 8:00\npython t.py\n'
)


@in_one_test("text", [ONE, PBS, LSF, ONE.replace("--ntasks=1", "--mem=8G --ntasks=1")])
def test_gpus_that_the_job_reserves_without_a_rank_are_named(text: str) -> None:
    said = facts(text, "lumi-g")
    assert said.count("GPUs: the ranks have 1, and the job reserves 8, since it gets whole nodes:") == 1
    assert "small-g shares nodes, and hpclaunch on lumi-g requests whole ones" in said
    assert (
        facts(text, "polaris").count("the job reserves 4, since it gets whole nodes: start several runs") == 1
    )
    assert "workq shares nodes" in facts(text, "isambard-ai")


def test_where_hpclaunch_requests_parts_of_nodes_the_setting_is_named() -> None:
    ported = port(ONE, "saga-a100")
    assert "queue: a100 with exclusive: false takes no more" in "\n".join(ported.notes)
    settings = {**ported.settings, "exclusive": False}
    whole, part = rendered(ported)[1], rendered(msgspec.structs.replace(ported, settings=settings))[1]
    assert ("--gpus-per-node=4" in whole, "--gpus-per-node=1" in part) == (True, True)


def test_idle_gpus_count_in_each_node_and_each_job_of_an_array() -> None:
    head = "#!/bin/bash\n#SBATCH -N 3 --ntasks-per-node=2 --gpus-per-node=2 -t 10 --array=0-26%3\n"
    assert (
        "the ranks have 6, and the job reserves 8, since it gets whole nodes, in each of its 27 jobs"
        in facts(head + "srun python a.py\n")
    )
    two = head.replace("-N 3", "-N 7").replace("ntasks-per-node=2", "ntasks-per-node=1")
    assert "GPUs: the ranks have 14, and the job reserves 56, since" in facts(two + "srun python a.py\n")


def test_a_shared_queue_that_does_not_take_the_job_is_not_named() -> None:
    assert "small-g" in facts(ONE.replace("0:15:00", "2-12:00:00"))
    many = "#!/bin/bash\n#SBATCH -N 60 -n 420 --gpus-per-task=1 -t 10\nsrun python a.py\n"
    assert "small-g" not in facts(many)
    assert "the job reserves 480, since it gets whole nodes: start several runs on a node" in facts(many)


@in_one_test(
    "text, to",
    [
        (ONE.replace("--gpus=1", "--gpus=8"), "lumi-g"),
        (ONE.replace("--gpus=1", "--gpus=4"), "polaris"),
        (ONE.replace("--ntasks=1 --gpus=1", "-n 8 --gpus=2").replace("python", "srun python"), "lumi-g"),
        (ONE, "generic-slurm"),
        (ONE.replace("--ntasks=1 --gpus=1", "-N 1 --gpus=4").replace("python", "mpiexec python"), "lumi-g"),
    ],
)
def test_a_job_whose_ranks_have_all_gpus_has_no_idle_ones(text: str, to: str) -> None:
    assert "the job reserves" not in facts(text, to)


def test_of_a_script_without_gpus_those_of_the_nodes_are_named_and_nodes_that_have_none() -> None:
    text = ONE.replace("--gpus=1", "")
    said = "GPUs: the script requests none that can be read: the job reserves all {} of each node"
    none = "nodes without any: {}, for which you write the script yourself"
    assert said.format(8) in facts(text, "lumi-g")
    assert none.format("standard, small, debug, largemem of lumi-g") in facts(text, "lumi-g")
    for site in ("polaris", "daint"):  # whose queue without GPUs is for the transfer of files
        assert said.format(4) in facts(text, site)
        assert "nodes without any" not in facts(text, site)
    assert said.format(4) in facts(text.replace("SBATCH", "COBALT"), "polaris", "theta")
    for other, to in ((ONE, "lumi-g"), (text, "generic-slurm"), (text, "betzy")):
        assert "requests none" not in facts(other, to)


@in_one_test(
    "head, share",
    [
        ("#SBATCH -n 1 --gpus-per-node=1 --cpus-per-gpu=8 -t 10", "has 8 in the script"),
        ("#SBATCH -n 1 --gpus-per-node=1 --cpus-per-gpu=7 -t 10", ""),
        ("#SBATCH -n 1 --gpus-per-node=2 --cpus-per-gpu=8 -t 10", "has 16 in the script"),
        ("#SBATCH -n 1 --gpus-per-node=1 --cpus-per-task=4 --mem=8G -t 10", ""),
        ("#SBATCH -n 16 -N 1 --gpus-per-node=1 -t 10", "has 16 in the script"),
        ('#BSUB -n 8\n#BSUB -gpu "num=1"\n#BSUB -W 10', "has 8 in the script"),
        ('#BSUB -n 4\n#BSUB -gpu "num=1"\n#BSUB -W 10', ""),
        ("#PBS -l select=1:ncpus=16:ngpus=1\n#PBS -l walltime=0:10:00", "has 16 in the script"),
        ("#PBS -l select=1:ncpus=6:ngpus=1\n#PBS -l walltime=0:10:00", ""),
        ("#PBS -l nodes=1:ppn=8:gpus=1\n#PBS -l walltime=0:10:00", "has 8 in the script"),
    ],
)
def test_the_cores_of_a_rank_are_compared_in_each_form(head: str, share: str) -> None:
    said = facts(f"#!/bin/bash\n{head}\npython main.py\n")
    assert (share in said, "cores: a rank" in said) == (True, bool(share))


def test_the_cores_of_several_ranks_are_shared_among_them() -> None:
    two = '#!/bin/bash\n#BSUB -n 8\n#BSUB -gpu "num=2"\n#BSUB -W 10\n'
    assert "cores: a rank" not in facts(f"{two}mpirun -n 8 python a.py\n")
    assert "cores: a rank" not in facts(f"{two}torchrun --nproc_per_node=2 a.py\n")
    pbs = "#!/bin/bash\n#PBS -l select=2:ncpus=32:mpiprocs=2:ngpus=2\n#PBS -l walltime=0:10:00\n"
    assert "a rank has 16 in the script" in facts(f"{pbs}mpiexec -n 4 --ppn 2 python a.py\n")
    own = pbs.replace("mpiprocs=2:ngpus=2", "system=polaris").replace("ncpus=32", "ncpus=64")
    ranks = f"{own}mpiexec -n 8 --ppn 4 python a.py\n"
    assert "a rank has 16" in facts(ranks, "lumi-g", "polaris")
    assert "cores: a rank" not in facts(ranks, "polaris", "polaris")


THREADS = "#!/bin/bash\n#SBATCH -n 1 -t 10 -c {cores}\nexport OMP_NUM_THREADS={value}\npython main.py\n"


@in_one_test(
    "cores, value, why",
    [
        (
            1,
            "$SLURM_CPUS_PER_TASK",
            "it to the cores that a rank requests (1), so here to those of a rank on lumi-g",
        ),
        (16, "${SLURM_CPUS_PER_TASK}", "the cores that a rank requests (16), so here"),
        (1, "$(nproc)", "its value is known at run time only"),
        (1, "64", "more than the cores that a rank has on lumi-g"),
        (1, "4", ""),
    ],
)
def test_threads_that_become_the_cores_of_a_rank_have_the_true_reason(
    cores: int, value: str, why: str
) -> None:
    ported = port(THREADS.format(cores=cores, value=value), "lumi-g")
    found = [one for one in ported.report.changed if one.line == 3]
    if why:
        assert (found[0].to, why in found[0].why) == ("OMP_NUM_THREADS: the cores of each rank", True)
    assert (ported.settings.get("env"), len(found)) == (
        {"OMP_NUM_THREADS": value} if not why else None,
        bool(why),
    )


RANKS = "#!/bin/bash\n#SBATCH -N 2 -n 4 --gres=gpu:2 -t 10\n{lines}\nsrun python ddp.py {words}\n"


@in_one_test(
    "lines, words, named",
    [
        ("", '--world-size="$SLURM_NTASKS"', False),
        ("", "--world-size $SLURM_NTASKS", False),
        ("N=${SLURM_NTASKS}", "--world-size $N", False),
        ("N=$((SLURM_NNODES * 2))", "--world-size $N", False),
        ("export NUM_PROCS=$SLURM_NTASKS", "", False),
        ("", "--world-size 4", True),
        ("N=4", "--world-size $N", True),
        ("export NUM_PROCS=4", "", True),
        ("N=$((SLURM_NNODES * 3))", "--world-size $N", True),
    ],
)
def test_a_size_that_port_computed_for_the_job_here_is_no_task(lines: str, words: str, named: bool) -> None:
    said = "\n".join(port(RANKS.format(lines=lines, words=words), "lumi-g").to_do)
    assert ("was a size of the job" in said) is named


def test_slots_of_another_number_than_ranks_are_no_size_here() -> None:
    text = "#!/bin/bash\n#SBATCH -n 16 --gpus=1 -t 10\nexport NUM_PROCS=$SLURM_NTASKS\npython a.py\n"
    assert "NUM_PROCS: 16 was a size of the job" in "\n".join(port(text, "lumi-g").to_do)


@in_one_test(
    "head, launch, said",
    [
        ("--nodes=1-7 --ntasks=1", "python a.py", ""),
        ("-N 1-7", "python a.py", ""),
        ("--nodes=2-7 --ntasks=1", "python a.py", "requests 2 and starts 1 rank"),
        ("--nodes=7 --ntasks=1", "python a.py", "requests 7 and starts 1 rank"),
        ("--nodes=1-7 --ntasks=4", "srun python a.py", ""),
        ("--nodes=1-4 --ntasks-per-node=2", "srun python a.py", ""),
    ],
)
def test_of_a_range_of_nodes_no_more_than_the_ranks_count(head: str, launch: str, said: str) -> None:
    ported = port(f"#!/bin/bash\n#SBATCH {head} -t 10\n{launch}\n", "polaris")
    found = "\n".join(ported.to_do)
    assert (said in found, "nodes: " in found) == (True, bool(said))


def test_the_gpus_of_a_range_of_nodes_are_those_of_its_ranks() -> None:
    text = "#!/bin/bash\n#SBATCH --nodes=1-4 --ntasks=1 --gpus-per-node=1 -t 10\npython a.py\n"
    assert port(text, "lumi-g").settings["gpus_per_task"] == 1
    ranks = port(
        text.replace("ntasks=1", "ntasks-per-node=2").replace("python", "srun python"), "lumi-g"
    ).settings
    assert ranks["tasks_per_node"] * ranks["nodes"] == 8
