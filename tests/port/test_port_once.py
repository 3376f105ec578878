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


TWICE = "mpirun -np 4 ./a > log.out\n{}"


@in_one_test(
    "body, launch",
    [
        ("L=log.out\nmpirun -np 4 ./a > $L\nmpirun -np 4 ./a > $L", True),
        ("L=log.out\nmpirun -np 4 ./a &> $L\nmpirun -np 4 ./a&>$L", True),
        ("mpirun -np 4 ./a > a.dat\nmpirun -np 4 ./b > b.dat", True),  # whatever its output is
        ("mpirun -np 4 ./a > a.dat\n\nL=b.log\npython b.py > $L", True),
        ("mpirun -np 4 ./a\nmpirun -np 4 hostname > hosts", False),
        ("mpirun -np 4 ./a\nmpirun -np 1 cat a > b", False),
        ("mpirun -np 4 ./a\n\npython conf.py > a.conf", False),
        ("mpirun -np 4 ./a\n\nD=$(date +%s).txt\npython conf.py > $D", False),
    ],
)
def test_a_second_launch_is_one_whatever_file_its_output_goes_to(body: str, launch: bool) -> None:
    last = body.count("\n") + 3
    said = next(text for text in to_do(body).split("\n") if text.startswith(f"line {last}: "))
    assert ("a job of hpclaunch has one launch, here that of line" in said) == launch
    assert ("write that file once" in said) == (not launch)


@in_one_test(
    "body, fed, named",
    [
        ("./gen | mpirun -np 4 ./a", "line 3 reads what another command prints: write it to a file", False),
        ("./gen 2 | sort |& mpirun -np 4 ./a", "line 3 reads what another command prints", False),
        ("mpirun -np 4 ./a\n./gen | mpirun -np 4 ./b", "line 4: a job of hpclaunch has one launch", False),
        ("mpirun -np 4 ./a\n./gen | tee a.txt", "line 4: a job file has no place for it: run it", True),
        ("mpirun -np 4 ./a\n./gen && mpirun -np 4 ./b", "line 4: a job file has no place for it", True),
        ("mpirun -np 4 ./a\n./gen | mpirun -np 1 cat", "line 4: a job file has no place for it", True),
    ],
)
def test_what_a_launch_reads_from_a_pipe_belongs_to_it(body: str, fed: str, named: bool) -> None:
    assert fed in to_do(body)
    assert ("a job file has no place for it" in to_do(body)) == named


def test_the_same_advice_for_a_value_and_for_a_line_is_given_for_both() -> None:
    said = to_do("X=$(./ask)\n./prepare\nsrun ./a")
    assert "line 3: it runs ./ask: a job file has no place for it" in said
    assert "line 4: a job file has no place for it" in said


@in_one_test(
    "body, read",
    [
        ("L=a.dat\nmpirun -np 4 ./a > $L\nmpirun -np 4 ./b > $L", False),
        ("mpirun -np 4 ./a >a.log\n./b 1>> a.log", False),
        ("mpirun -np 4 ./a&>a.log\n./b &>a.log", False),
        ("mpirun -np 4 ./a > a.log\n./b < a.log", True),
        ("mpirun -np 4 ./a&>a.log\n./b a.log > b.log", True),
        ("mpirun -np 4 ./a > a.log\n./b -i a.log", True),
    ],
)
def test_a_line_that_writes_a_file_does_not_read_it(body: str, read: bool) -> None:
    lines = body.count("\n") + 3
    assert (f"which line {lines} reads" in to_do(body)) == read


@in_one_test(
    "words, names",
    [
        ("--nnodes 2 --nproc_per_node 4 --rdzv_id 4 --rdzv_endpoint a:1", "--nnodes, --nproc_per_node"),
        ("--nproc_per_node=4", "--nproc_per_node"),
        ("--rdzv_id 4 --rdzv_backend c10d", ""),
        ("--nodes_in_graph 4", ""),
    ],
)
def test_options_that_start_processes_are_named_in_one_line(words: str, names: str) -> None:
    said = to_do(f"srun ./run.py {words}")
    assert said.count("start processes, as torchrun does") == bool(names)
    assert not names or f"ranks: {names} of line 3 start processes" in said


def test_gpus_of_a_directive_that_is_not_read_are_named_once() -> None:
    head = "#!/bin/bash\n#$ -l nvidia_v100\n#$ -l h_rt=1:0:0\nmodule load pytorch-cuda\n"
    said = to_do("python a.py", head=head)
    assert said.count("GPUs: -l nvidia_v100: how many per node is not known: set gpus_per_task") == 1
    assert "speak of some" not in said
    assert "port does not know" not in said
    assert "GPUs: line 4 speak of some" in to_do("python a.py", head=head.replace("nvidia_v100", "h_vmem=4G"))
    other = to_do("python a.py", head=head.replace("nvidia_v100", "bigmem"))
    assert "GPUs: line 4 speak of some" in other
    assert "line 2: -l bigmem: port does not know" in other


@in_one_test(
    "name, named",
    [("PSM_SHAREDCONTEXTS_MAX", False), ("PSM2_CUDA", True)],
)
def test_a_variable_of_a_network_that_no_profile_has_is_nothing_to_do(name: str, named: bool) -> None:
    said = to_do(f'X=$(cat x)\nif [ "$?" = 0 ]; then\n  export {name}=$X\nfi\nsrun ./a')
    assert ("name in env what the program itself needs" in said) == named
    assert ("line 4: a condition" in said) == named


@in_one_test(
    "body, named",
    [
        ("X=$(./max)\nexport PSM_SHAREDCONTEXTS_MAX=$X", False),
        ("X=`./max`\nexport PSM_SHAREDCONTEXTS_MAX=$X GLOO_SOCKET_IFNAME=$X", False),
        ("X=$(./max)\nexport PSM_SHAREDCONTEXTS_MAX=$X\nexport MAX=$X", True),
        ("X=$(./max)\nexport PSM_SHAREDCONTEXTS_MAX=3", True),  # that nothing reads it says nothing
        ("X=$(./max | tail -n 1)\necho $X", True),
        ("X=$(mv a b)\nexport PSM_SHAREDCONTEXTS_MAX=$X", True),
    ],
)
def test_what_computes_a_variable_of_one_machine_alone_is_nothing_to_do(body: str, named: bool) -> None:
    assert ("line 3: it runs " in to_do(f"{body}\nsrun ./a")) == named


def test_the_lines_of_a_word_that_the_run_computes_are_those_of_its_task() -> None:
    body = 'S=$(sed 3q f)\nC="srun ./a $S -x"\neval $C'
    assert "a word of lines 3-4 that the run computes" in to_do(body)
    assert "so what uses it is to be filled in" not in to_do(body)
    assert "env S: FILL_IN_S" in to_do("S=$(sed 3q f)\nsrun ./a $S")


@in_one_test(
    "words, command, asked",
    [
        ("$BIDS_DIR out participant", "exec /singularity ${BIDS_DIR} out participant", False),
        ("/data out participant", "/singularity /data out participant", False),
        ("--help", "/singularity --help", False),
        ("python a.py", "python a.py", True),
        ("torchrun --nproc_per_node 4 a.py", "python a.py", True),
        ("./a out", "./a out", True),
    ],
)
def test_words_of_the_image_s_own_program_stay_its_own(words: str, command: str, asked: bool) -> None:
    ported = port(f"{HEAD}srun singularity run a.sif {words}\n", source=None, to="olivia")
    assert " ".join(ported.settings["command"]).endswith(command)
    said = "\n".join(ported.to_do)
    assert ("gives these words to the image's own program" in said) == asked
    assert "may start processes itself" not in said
