"""What findings say: names as the script has them, and remedies for its own scheduler."""

from __future__ import annotations

from hpclaunch.lint.lint_rule import Finding
from hpclaunch.lint.lint_script import find_faults
from tests.in_one_test import in_one_test


def _found(rule: str, body: str) -> Finding:
    [one] = [each for each in find_faults(f"#!/bin/bash\n{body}\n") if each.rule == rule]
    return one


@in_one_test(
    "launcher, said", [("mpirun", "mpirun"), ("mpiexec", "mpiexec"), ("time mpirun.lsf", "mpirun.lsf")]
)
def test_a_launcher_is_called_as_in_the_script(launcher: str, said: str) -> None:
    found = _found("status-lost", f"#SBATCH -t 10\n{launcher} ./app\necho done")
    assert found.message.startswith(f"the status of {said} is lost")


@in_one_test(
    "directives, remedy",
    [
        ("#SBATCH -N1", "#SBATCH --time=01:00:00"),
        ("#PBS -l select=1", "#PBS -l walltime=01:00:00"),
        ("#$ -cwd", "#$ -l h_rt=01:00:00"),
        ("#BSUB -n 4", "#BSUB -W 01:00"),
        ("#flux: -N1", "#flux: -t 60m"),
        ("#COBALT -n 4", "#COBALT -t 60"),
    ],
)
def test_a_time_is_requested_as_the_scheduler_reads_it(directives: str, remedy: str) -> None:
    found = _found("time-missing", f"{directives}\n./app")
    assert f"`{remedy}`" in found.remedy
    given = find_faults(f"#!/bin/bash\n{directives}\n{remedy}\n./app\n")
    assert {"time-missing", "walltime-unreadable"}.isdisjoint(one.rule for one in given)


@in_one_test(
    "directives, remedy",
    [
        ("#SBATCH -n 8", "write -n $SLURM_NTASKS, or leave the number out"),
        ("#$ -pe mpi 8", "write -n $NSLOTS, or leave the number out"),
        ("#BSUB -n 8", "write -n $LSB_DJOB_NUMPROC, or leave the number out"),
        ("#PBS -l select=1:ncpus=8:mpiprocs=8", "count the slots, or leave the number out"),
    ],
)
def test_the_number_of_tasks_is_in_a_variable_of_the_scheduler(directives: str, remedy: str) -> None:
    assert _found("ranks-differ-from-tasks", f"{directives}\nmpirun -n 16 ./app").remedy == remedy


@in_one_test(
    "text, said",
    [
        ('"$(dirname "${BASH_SOURCE[0]}")"', "dirname ${BASH_SOURCE[0]}: "),
        ('"$(dirname "${BASH_SOURCE:-$0}")"', "dirname ${BASH_SOURCE:-$0}: "),
        ('"$(dirname "$0")"', "dirname $0: "),
        ('"$(dirname $BASH_SOURCE)"', "dirname $BASH_SOURCE: "),
    ],
)
def test_the_own_path_is_shown_whole(text: str, said: str) -> None:
    assert _found("script-path-copied", f"#SBATCH -t 10\ncd {text}\n./app").message.startswith(said)


@in_one_test("more, said", [("", "in"), ("a", "in, also line 4"), ("ab", "in, also lines 4, 5")])
def test_lines_to_fill_in_are_counted(more: str, said: str) -> None:
    lines = "".join(f"#SBATCH --comment=<{letter}_name>\n" for letter in more)
    found = _found("placeholder", f"#SBATCH -t 10\n#SBATCH --account=<project>\n{lines}./app")
    assert found.message.endswith(f"is to be filled {said}")


def test_the_cpus_of_one_process_are_requested_as_the_scheduler_reads_them() -> None:
    pbs = _found("tasks-for-threads", "#PBS -l nodes=2:ppn=8\ndiamond blastp --threads 16 -q a -d b")
    slurm = _found("tasks-for-threads", "#SBATCH --ntasks=40\ndiamond blastp --threads 40 -q a -d b")
    assert "select=1:ncpus=THREADS" in pbs.remedy
    assert "--cpus-per-task=THREADS" in slurm.remedy


@in_one_test(
    "rule, body, remedy",
    [
        ("directive-unknown", "#SBATCH --share", "did you mean --oversubscribe?"),
        ("directive-unknown", "#SBATCH --cpus=4", "did you mean --cpus-per-task?"),
        ("directive-unknown", "#SBATCH --mem-per-task=3G", "did you mean --mem or --mem-per-cpu?"),
        ("directive-unknown", "#SBATCH --ntasks_per_node=3", "did you mean --ntasks-per-node?"),
        ("directive-unknown", "#$ -mem 4G", "did you mean -l h_vmem=?"),
        ("directive-unknown", "#$ -umask 4", "Correct the name."),
        ("directive-unknown", "#SBATCH --cpu-bind=cores", "it is one of srun: write it behind srun"),
        ("directive-equals", "#PBS -l=select=1", "write -l select=1"),
        ("directive-stray-word", "#SBATCH --output= out.txt", "write --output=out.txt, without a blank"),
        ("directive-stray-word", "#PBS -l select=1 foo", "remove the word"),
        ("directive-stray-word", "#BSUB -n 1 foo", "remove the word"),
        ("unit-missing", "#SBATCH --time=48:00", "write `--time=48:00:00`"),
        ("unit-missing", "#SBATCH --mem-per-cpu=4", "write `--mem-per-cpu=4G`"),
        ("unit-missing", "#PBS -l walltime=24", "write `-l walltime=24:00:00`"),
        ("unit-missing", "#PBS -l pmem=4", "write `-l pmem=4gb`"),
        ("unit-missing", "#PBS -l select=1:mem=16", "write `:mem=16gb`"),
        ("unit-missing", "#$ -l h_rt=24", "write `-l h_rt=24:00:00`"),
        ("set-option-misspelt", "set -o nounset errexit", "write set -o nounset -o errexit"),
        ("set-option-misspelt", "set -eu pipefail", "write set -euo pipefail"),
    ],
)
def test_a_remedy_is_what_to_write(rule: str, body: str, remedy: str) -> None:
    assert _found(rule, body).remedy == remedy


@in_one_test(
    "body, message, remedy",
    [
        (
            "if [[ -d out]]; then\n  :\nfi",
            "syntax error: a blank is missing before ]]",
            "write a blank before `]]`",
        ),
        ("[[ -d out]] && ./app", "syntax error: a blank is missing before ]]", "write a blank before `]]`"),
        (
            "if true\n./app\nfi",
            "syntax error: unexpected fi: if of line 2 has no then",
            "write `; then` at the end",
        ),
        (
            "for i in 1\n./app\ndone",
            "syntax error: unexpected done: for of line 2 has no do",
            "write `; do` at the",
        ),
        (
            "if true; then\nelse\n:\nfi",
            "syntax error: unexpected else: if of line 2 has no command",
            "write a comm",
        ),
        (
            "./app\ndone",
            "syntax error: unexpected done: it ends nothing",
            "remove it, or write the word before",
        ),
        (
            "if true; then\n./app",
            "syntax error: unexpected end of the file: if is not closed",
            "write its `fi`",
        ),
        ("f() {\n./app", "syntax error: unexpected end of the file: function is not closed", "write its `}`"),
        (
            "./app 'a",
            "syntax error: unexpected end of the file: ' is not closed",
            "write the sign that closes it",
        ),
        (
            "./app (8,)",
            "syntax error: unexpected (",
            'Quote the word (`"(8,)"`), or take the surplus sign away.',
        ),
        (
            "cat <<EOF\n  EOF\n./app",
            "<< EOF: no line is EOF alone, so the lines up to the end of the file are its text, and are "
            "not run",
            "write `EOF` alone at the beginning of a line (behind `<<-` after tabs)",
        ),
    ],
)
def test_an_error_of_syntax_names_the_part_that_is_missing(body: str, message: str, remedy: str) -> None:
    found = find_faults(f"#!/bin/bash\n{body}\n")
    [one] = [each for each in found if each.rule == "shell-syntax"]
    assert one.message == message
    assert one.remedy.startswith(remedy)


@in_one_test(
    "body", ["if [[ -d out]]; then\n  srun ./app\nfi", "cat <<EOF\n  EOF\nsrun ./app", "echo 'a\nsrun a"]
)
def test_behind_an_error_of_syntax_no_program_is_missing(body: str) -> None:
    rules = {one.rule for one in find_faults(f"#!/bin/bash\n#SBATCH -t 10\n{body}\n")}
    assert "shell-syntax" in rules
    assert "nothing-started" not in rules
    assert "nothing-started" in {one.rule for one in find_faults("#!/bin/bash\n#SBATCH -t 10\necho a\n")}
