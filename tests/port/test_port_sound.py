"""Nothing of a script is lost without a word, and nothing of the other machine stays without one."""

from __future__ import annotations

import re

from hpclaunch.port.port_script import Ported, port_script
from hpclaunch.port.port_text import rendered_port
from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import check_report
from tests.profiles import shipped

SLURM = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-node=4 -t 10\n"


def port(text: str, to: str = "polaris") -> Ported:
    target = shipped(to)
    ported, _ = rendered_port(port_script(text, None, target), target)
    check_report(text, ported)
    return ported


def to_do(body: str, to: str = "polaris", head: str = SLURM) -> str:
    return "\n".join(port(f"{head}{body}\n", to).to_do)


@in_one_test(
    "line, said",
    [
        ("#SBATCH -C v100\nsrun ./a", "line 3: -C v100: port does not know"),
        ("#SBATCH --licenses=ansys:1\nsrun ./a", "line 3: --licenses=ansys:1: port does not know"),
        ("#SBATCH --gres=gpu:a100_80gb:4\nsrun ./a", "line 3: a100_80gb of --gres=gpu:a100_80gb:4: no part"),
        ("#SBATCH --quotatype=spot\nsrun ./a", "line 3: --quotatype=spot: sbatch has no such option"),
        ("#SBATCH --export=ALL,DATA\nsrun ./a", "env: DATA: the shell that submits gives them their values"),
        ("#SBATCH --nodes=@NODES@\nsrun ./a", "line 3: --nodes=@NODES@ is not read"),
    ],
)
def test_a_word_of_a_directive_is_carried_or_named(line: str, said: str) -> None:
    assert said in to_do(line)


def test_a_kind_of_gpu_that_all_nodes_have_is_no_open_point() -> None:
    head = "#!/bin/bash\n#SBATCH -N 2 -n 8 -t 10\n#SBATCH --gres=gpu:a100:4\n"
    assert "a100" not in to_do("srun ./a", "polaris", head).lower()
    for kind in ("a100", "tesla_v100", "nvidia_h100", "mi250x"):  # of which lumi-g has none but the last
        assert f"{kind} of" not in to_do(f"#SBATCH --gres=gpu:{kind}:4\nsrun ./a", "lumi-g")
    assert "line 3: a100" in to_do("#SBATCH --gres=gpu:a100:4\nsrun ./a", "generic-slurm")


@in_one_test(
    "head, said",
    [
        ("#!/bin/sh\n#$ -pe impi 8\n#$ -jc pcc.168h\n", "line 3: -jc pcc.168h: qsub has no such option"),
        ("#!/bin/sh\n#$ -pe impi 8\n#$ -tc 5\n", "line 3: -tc 5"),
        ("#!/bin/sh\n#PBS -l select=1:ncpus=8:gpu_type=V100:mem=9000gb\n", "line 2: mem of -l select"),
        ("#!/bin/sh\n#BSUB -R 'select[model=Xeon]' -n 4\n", "line 2: xeon of -R"),
    ],
)
def test_a_word_of_other_schedulers_is_carried_or_named(head: str, said: str) -> None:
    assert said.lower() in to_do("mpirun -n 8 ./a", head=head).lower()


@in_one_test(
    "line, said",
    [
        ("scontrol write batch_script $SLURM_JOB_ID copy.sh", "line 3: a job file has no place for it"),
        ("nvcc -o a a.cu", "line 3: a job file has no place for it"),
        ("python -c 'import x; x.fetch()'", "line 3: a job of hpclaunch has one launch"),
        ("python -c '" + 40 * "import x ; " + "x.fetch()'", "line 3: a job of hpclaunch has one launch"),
        ('python -c \'with open("a", "w") as f: f.write("b")\'', "line 3: a job of hpclaunch has one launch"),
        ("X=$(./make_input)", "line 3: it runs ./make_input"),
        ("module restore mine", "line 3: module restore mine: modules of the other machine"),
        ("module use /opt/other", "software: a job of polaris that needs it gets"),
        ("module use /opt/other", "see that it has what module use /opt/other gave"),
    ],
)
def test_a_command_that_does_something_is_named(line: str, said: str) -> None:
    assert said in to_do(f"{line}\nsrun ./a")


@in_one_test(
    "line", ["scontrol show job 1", "nvcc --version", "X=$(basename $PWD)", "nvidia-smi -L", "D=/data/x"]
)
def test_a_command_that_only_prints_is_no_open_point(line: str) -> None:
    assert "line 3" not in to_do(f"{line}\nsrun ./a")


@in_one_test(
    "line, to, said",
    [
        ("srun ./a -x hip", "polaris", "command: hip is of amd"),
        ("srun ./a -x hip", "lumi-g", ""),
        ("srun python a.py --device cuda:0", "lumi-g", "command: cuda is of nvidia"),
        ("srun ./a.gnu.CUDA.ex", "lumi-g", "command: a.gnu.CUDA.ex is of nvidia"),
        ("srun ./a.gnu.CUDA.ex", "polaris", ""),
        ("export PYOPENCL_CTX=AMD:0\nsrun ./a", "polaris", "env PYOPENCL_CTX: AMD is of amd"),
        (
            "srun bash -c 'ROCR_VISIBLE_DEVICES=1 ./a; ./b'",
            "lumi-g",
            "ROCR_VISIBLE_DEVICES is of hpclaunch's",
        ),
        ("srun nsys -o %q{OMPI_COMM_WORLD_RANK} ./a", "olivia", "OMPI_COMM_WORLD_RANK is of another MPI"),
        ("srun bash -c 'cd /x; ./a; ./b'", "polaris", "cd is of hpclaunch's script here, which sets up"),
        ("srun bash -c 'RANK=1; ./a $RANK; ./b'", "polaris", "command: RANK is of hpclaunch's script here"),
        ("srun bash -c './a ${SGE_X}; ./b'", "polaris", "command: line 3 reads $SGE_X, which"),
        ("srun bash -c './a ${COBALT_FOO}; ./b'", "polaris", "command: line 3 reads $COBALT_FOO, which"),
        ("bash -c './a $LSB_FOO; ./b'", "polaris", "command: line 3 reads $LSB_FOO, which"),
        ("srun ./a -ntomp 2", "polaris", "command: -ntomp 2 of line 3 is a number of threads"),
        ("export OMP_NUM_THREADS=2\nsrun ./a -ntomp 2", "polaris", ""),
    ],
)
def test_what_stays_and_may_be_wrong_here_is_named(line: str, to: str, said: str) -> None:
    found = to_do(line, to)
    assert said in found if said else not any(word in found for word in (" is of ", "number of threads"))


def test_a_value_that_follows_from_the_index_is_not_filled_in_once() -> None:
    """One text in env would be the same for all jobs of the array."""
    body = '#SBATCH --array=1-3\nF=$(sed -n "${SLURM_ARRAY_TASK_ID}p" files)\nsrun ./a $F'
    said = "one value is the same in all jobs of the array 1-3: compute it from HPCLAUNCH_ARRAY_INDEX"
    assert to_do(body).count("HPCLAUNCH_ARRAY_INDEX") == 1
    needs = "env F: FILL_IN_F: the command needs it (line 4), and it follows from the index"
    assert f"{needs}: {said}" in to_do(body)
    assert said not in to_do(body.replace("#SBATCH --array=1-3\n", ""))
    # What the value is made of is named by its line alone.
    far = to_do("#SBATCH --array=1-3\nI=$SLURM_ARRAY_TASK_ID\n./prepare $I\nsrun ./a $F")
    assert "env: FILL_IN values are the same in all jobs of the array 1-3" in far
    assert "env F: FILL_IN_F: the command needs it (line 6), and its value is not in the script" in far
    assert "are the same" not in to_do("#SBATCH --array=1-3\nsrun ./a $SLURM_ARRAY_TASK_ID")


def test_ranks_with_fewer_cores_than_in_the_script_are_named() -> None:
    head = "#!/bin/bash\n#SBATCH -n 24 -c 8 -N 1 -t 10\n"
    assert "ranks: each has 8 cores in the script and 2 here" in to_do("srun ./a", "lumi-g", head)


def test_a_value_that_the_command_changes_is_named() -> None:
    """Bash here cuts the end off a variable that no line of the job file sets."""
    assert "env FILL_IN_WORD: FILL_IN_WORD" in to_do("A='-x one'\nsrun ./a ${A% *}")
    assert "env A: FILL_IN_A: the command needs it (line 3)" in to_do("A=one.txt\nsrun ./a ${A^}")
    assert "FILL_IN" not in to_do("A='-x one'\nsrun ./a $A").replace("FILL_IN_ACCOUNT", "")


def test_arithmetic_in_brackets_is_computed() -> None:
    """Bash's old form: ``$[2 * 4]``."""
    ported = port(f"{SLURM}N=120\nsrun -n $[2*4] ./a $[N*4]\n")
    assert (ported.settings["tasks_per_node"], ported.settings["command"]) == (4, ("./a", "480"))
    assert "its value stands in" in str(ported.report)


@in_one_test(
    "line, env",
    [
        ("mpirun -x A=a,b -x B=0,1 ./a", {"A": "a,b", "B": "0,1"}),
        ("mpiexec -genv A a,b ./a", {"A": "a,b"}),
        ("srun --export=ALL,A=0,1,HOME,B=b ./a", {"A": "0,1", "B": "b"}),
        ("#SBATCH --export='A=1, B=b'\nsrun ./a", {"A": "1", "B": "b"}),
    ],
)
def test_values_of_exported_variables_are_whole(line: str, env: dict[str, str]) -> None:
    ported = port(f"{SLURM}{line}\n")
    assert ported.settings["env"] == env
    assert "the shell that submits" not in str(ported.to_do)


def test_a_file_that_cobalt_gives_as_stdin_is_named() -> None:
    head = "#!/bin/bash\n#COBALT -n 2 -t 10\n#COBALT --inputfile in.txt\n"
    assert "the program reads it as stdin" in to_do("aprun -n 2 ./a", head=head)


@in_one_test(
    "body, said",
    [
        ("srun ./a\n$RUN -n 2 ./b", "line 4: a job file has no place for it"),
        ("srun tacc_affinity ./a", "command: tacc_affinity starts ./a, and port does not read how"),
        ("srun --gres=gpu:$N ./a", "line 3: srun's gres is not a number that can be read"),
        ("srun --ntasks-per-gpu=1 ./a", "ranks: the number of ranks is known at run time only"),
        ("srun ./a\nsrun nvidia-smi dmon -f a.csv", "line 4: a job of hpclaunch has one launch"),
        ("srun bash -c 'nvidia-smi > a.csv'\nsrun ./a", "line 3: it writes a.csv"),
        ("OUT=$(srun ./a -x 1 | tail -n 1)", "command: the script reads what line 3 prints"),
        ("srun -n 8 --multi-prog a.conf", "line 3: srun's multi-prog has no setting here: a file says which"),
        (
            "mpirun --app file",
            "line 3: mpiexec's app has no setting here: a file says which programs it starts",
        ),
    ],
)
def test_a_launch_that_is_not_read_whole_is_named(body: str, said: str) -> None:
    assert said in to_do(body)


def test_kinds_of_nodes_that_one_request_has_are_named() -> None:
    head = "#!/bin/bash\n#PBS -l select=1:ncpus=4:mpiprocs=1+2:ncpus=8:mpiprocs=8\n#PBS -l walltime=1:00:00\n"
    assert "line 2: + of -l select=" in to_do("mpirun ./a", head=head)
    assert "line 2: +" not in to_do(
        "mpirun ./a", head=head.replace("1:ncpus=4:mpiprocs=1", "1:ncpus=8:mpiprocs=8")
    )


def test_a_file_of_nodes_that_only_the_launcher_reads_is_nothing_to_do() -> None:
    body = "rm -f hosts\nfor n in $(scontrol show hostnames); do\necho $n slots=4 >> hosts\ndone\n"
    assert "line" not in to_do(body + "mpirun -np 8 --hostfile hosts ./a", to="lumi-g")
    assert "line 5: it writes hosts" in to_do(body + "mpirun -np 8 --hostfile hosts ./a hosts", to="lumi-g")
    assert "line 5: it writes hosts" in to_do(body + "mpirun -np 8 ./a -f hosts", to="lumi-g")


@in_one_test(
    "body, said",
    [
        ("if [ -f a ]; then\necho yes\nelse\ndate\nfi\nsrun ./a", ""),
        ("if [ -f a ]; then\necho yes\nexit 1\nfi\nsrun ./a", "line 3: a condition"),
        ("for n in a b; do\nsrun ./a\ndone", "line 3: a loop"),
        ("case $X in\na) cp b c;;\nesac\nsrun ./a", "line 3: a condition"),
    ],
)
def test_a_block_of_commands_that_are_left_out_is_nothing_to_do(body: str, said: str) -> None:
    found = to_do(body)
    assert said in found if said else "line" not in found


def test_the_program_of_a_script_without_a_launcher_is_judged_as_a_launch() -> None:
    ported = port(f"{SLURM}A=1 ./a -x < in.txt > out.dat\n")
    assert ported.settings["command"] == ("bash", "-c", "exec ./a -x < in.txt")
    assert ported.settings["env"] == {"A": "1"}
    assert "command: line 3 has the output in out.dat" in "\n".join(ported.to_do)


def test_a_variable_that_each_job_has_needs_no_default() -> None:
    ported = port(SLURM + 'srun ./a "${SLURM_SUBMIT_DIR:-/x}" "${SLURM_ARRAY_TASK_ID:-0}"\n')
    assert ported.settings["command"][2] == 'exec ./a "$PWD" "${SLURM_ARRAY_TASK_ID:-0}"'


def test_a_default_with_a_variable_or_blanks_stays_a_default() -> None:
    ported = port(SLURM + 'D=${D:-$HOME/d}\nsrun ./a $D "${E:-a b}" ${F:-c d}\n')
    assert ported.settings["command"][2] == 'exec ./a "${D:-$HOME/d}" "${E:-a b}" ${F:-c d}'
    assert "line 4 reads D, E, F, which the shell that submits may set" in "\n".join(ported.to_do)


@in_one_test(
    "head, to, directive",
    [
        ("#!/bin/bash\n#SBATCH -n 8 -t 10 --no-requeue\n", "polaris", "-r n"),
        ("#!/bin/bash\n#PBS -l select=1:mpiprocs=4\n#PBS -r y\n", "lumi-g", "--requeue"),
    ],
)
def test_what_follows_a_failed_node_is_said_in_the_way_of_the_scheduler(
    head: str, to: str, directive: str
) -> None:
    assert directive in port(f"{head}mpirun -n 4 ./a\n", to).settings["directives"]


def command(body: str, head: str = SLURM) -> str:
    return "\n".join(port(f"{head}{body}\n").settings["command"])


@in_one_test(
    "word, in_bash",
    [
        ("~/d", '"$HOME/d"'),
        ("~", '"$HOME"'),
        ("~bob/d", '"$(echo ~bob)/d"'),
        ("in=~/d", '"in=$HOME/d"'),
        ("in=a:~/d", '"in=a:$HOME/d"'),
        ("${OTHER:-~/d}", '"${OTHER:-$HOME/d}"'),
        ("~/{a,b}", '"$HOME/a" "$HOME/b"'),
        ("~/'a b'", '"$HOME/a b"'),
    ],
)
def test_a_home_becomes_that_of_the_user_on_the_other_machine(word: str, in_bash: str) -> None:
    assert command(f"srun ./a {word}") == f"bash\n-c\nexec ./a {in_bash}"


@in_one_test("word", ['"~/d"', "'~'/d", "\\~/d", "--in=~/d", "a~/d", "a:~/d", "~'/'d", '"in=~/d"'])
def test_a_tilde_that_bash_leaves_alone_stays(word: str) -> None:
    assert "$HOME" not in command(f"srun ./a {word}")
    assert "~" in command(f"srun ./a {word}")


def test_a_home_in_a_variable_and_in_files_is_read_by_the_shell_of_a_rank() -> None:
    lines = 'A=~/a\nexport B=x:~/b C="~/c"\nL=(~/l "~/m")\nsrun ./a $A/b "${L[@]}" < ~/in'
    made = port(f"{SLURM}{lines}\n").settings
    assert made["env"] == {"C": "~/c"}
    assert made["command"][2].split("\n") == [
        'export B="x:$HOME/b"',
        'exec ./a "$HOME/a/b" "$HOME/l" \'~/m\' < "$HOME/in"',
    ]
    assert "command: $HOME/d has to be a path on polaris" in to_do("srun ./a ~/d")
    assert command("HOME=/x\nsrun ./a ~/d") == "./a\n/x/d"
    image = port(f"{SLURM}srun singularity exec -B ~/d:/d ~/i.sif ./a\n").settings
    assert (image["container"], image["container_bind"]) == ("$HOME/i.sif", ("$HOME/d:/d",))


@in_one_test("name", ["export", "declare -x", "readonly"])
def test_the_words_of_one_command_are_read_before_it_sets_variables(name: str) -> None:
    assert command(f"A=0\n{name} A=1 B=$A\nsrun ./a $A $B") == "./a\n1\n0"


def test_assignments_without_a_command_are_made_from_left_to_right() -> None:
    assert command("A=0\nA=1 B=$A\nsrun ./a $A $B") == "./a\n1\n1"
    assert command("A=0\nexport A=1; export B=$A\nsrun ./a $A $B") == "./a\n1\n1"


def test_variables_of_one_launch_are_set_from_left_to_right() -> None:
    made = port(f"{SLURM}A=0\nA=1 B=x$A C=$B-${{A:-2}} srun ./a $A\n").settings
    assert (made["env"]["A"], made["env"]["B"], made["env"].get("C")) == ("1", "x1", None)
    assert made["command"] == ("./a", "0")


@in_one_test(
    "head, line, nodes, ranks",
    [
        ("-n 6", "srun --ntasks-per-node=3 ./a", 2, 3),
        ("-n 6 -N 3", "srun --ntasks-per-node=3 ./a", 3, 2),
        ("-n 8 -N 2", "srun --ntasks-per-node=3 ./a", 2, 4),
        ("-n 6 -N 2", "srun -n 4 --ntasks-per-node=2 ./a", 2, 2),
        ("-N 2", "srun --ntasks-per-node=3 ./a", 2, 3),
    ],
)
def test_the_tasks_of_the_job_count_before_those_per_node_of_srun(
    head: str, line: str, nodes: int, ranks: int
) -> None:
    text = f"#!/bin/bash\n#SBATCH {head} -t 10 --gpus-per-task=1\n{line}\n"
    made = port_script(text, None, shipped("polaris")).settings
    assert made["nodes"] * made["tasks_per_node"] == nodes * ranks


def test_tasks_per_node_of_srun_alone_are_not_guessed() -> None:
    assert "ranks: the number of ranks" in to_do(
        "srun --ntasks-per-node=3 ./a", head="#!/bin/bash\n#SBATCH -t 10\n"
    )


@in_one_test(
    "word, in_bash",
    [
        ("*.txt", '""*".txt"'),
        ("$D/*.txt", '"data/"*".txt"'),
        ('"$D x"/?.c', '"data x/"?".c"'),
        ("$PAT", '""*".md"'),
        ("~/*", '"$HOME/"*""'),
        ("{a,b}/*", '"a/"*"" "b/"*""'),
        ("${L[@]}", '""*".c"'),
    ],
)
def test_patterns_of_files_are_read_by_the_shell_of_a_rank(word: str, in_bash: str) -> None:
    lines = f"D=data PAT=*.md\nL=('*.c')\nsrun ./a {word}"
    assert command(lines) == f"bash\n-c\nexec ./a {in_bash}"


@in_one_test("word", ['"*.md"', "'?'", "\\*", '"$PAT"', '"${L[@]}"', "x'*'y"])
def test_a_pattern_in_quotes_stays_a_text(word: str) -> None:
    words = port(f"{SLURM}PAT='*.md'\nL=('*.c')\nsrun ./a {word}\n").settings["command"]
    assert words[0] == "./a"
    assert re.search(r"[*?]", words[1])


def test_the_value_of_an_integer_is_computed() -> None:
    assert command("K=2\ndeclare -i N=3+4 M=K*2\nsrun ./a $N $M") == "./a\n7\n4"
    assert command("declare -r N=3+4\nsrun ./a $N") == "./a\n3+4"


@in_one_test("line", ["((i+=2))", "((++i))", "(( j = 1, i-- ))", "k=$((i=5))", "((i<<=1))"])
def test_a_variable_that_arithmetic_changes_is_filled_in(line: str) -> None:
    assert "env i: FILL_IN_i" in to_do(f"i=1\n{line}\nsrun ./a $i")


@in_one_test(
    "line", ["((i<=2)) && echo x", "((i==1)); j=2", "((ii+=1))", "((1)); i=1", "k=$((i+1))", "((i!=1))"]
)
def test_a_variable_that_arithmetic_only_reads_keeps_its_value(line: str) -> None:
    assert command(f"i=1\n{line}\nsrun ./a $i") == "./a\n1"


@in_one_test("file", ["$OUT", '"$OUT"', "${OUT}", "res.csv"])
def test_an_output_file_of_data_is_named_by_its_value(file: str) -> None:
    said = to_do(f"OUT=res.csv\nsrun ./a > {file}")
    assert said.count("has the output in res.csv, which looks like data") == 1


def test_an_output_file_of_a_log_is_no_open_point() -> None:
    assert "output" not in to_do("OUT=res.log\nsrun ./a > $OUT 2> $OUT.csv")


@in_one_test(
    "head, body, threads",
    [
        ("#$ -pe smp 8\n#$ -cwd\n#$ -l h_rt=1:0:0\n", "export OMP_NUM_THREADS=$NSLOTS\n./a", "8"),
        ("#BSUB -n 8 -W 1:00\n", "export OMP_NUM_THREADS=$LSB_DJOB_NUMPROC\n./a", "8"),
        (
            "#PBS -l nodes=3:ppn=24,walltime=1:0:0\n",
            "cd $PBS_O_WORKDIR\nmpirun -n 3 -ppn 1 -genv OMP_NUM_THREADS $PBS_NUM_PPN ./a",
            "24",
        ),
        ("#$ -pe mpi 8\n#$ -cwd\n#$ -l h_rt=1:0:0\n", "export OUT=x$NSLOTS\nmpirun -np $NSLOTS ./a", None),
    ],
)
def test_slots_that_are_no_ranks_are_those_of_the_script(head: str, body: str, threads: str | None) -> None:
    """The number of slots was taken for the ranks, of which a program with threads is one."""
    ported = port(f"#!/bin/bash\n{head}{body}\n", "lumi-g")
    assert ported.settings.get("env", {}).get("OMP_NUM_THREADS") == threads
    assert ported.settings["tasks_per_node"] == (8 if threads is None else 1)
