"""Directives one by one, each with the near ones that mean something else."""

from __future__ import annotations

from tests.in_one_test import in_one_test
from tests.port.test_port_lines import fate, port

PBS = "#!/bin/bash\n#PBS -l select=1:ncpus=4:mpiprocs=4\n#PBS -l walltime=1:00:00\n"
END = "cd $PBS_O_WORKDIR\nmpiexec -n 4 ./a\n"


def to_do(text: str, to: str = "olivia") -> str:
    return "\n".join(port(text, source=None, to=to).to_do)


@in_one_test(
    "line",
    [
        "-N sim   # name of job",
        "-N sim #",
        "-N sim # -q long, once",
        "-j oe  # both in one",
        "-V ## all of them",
    ],
)
def test_a_comment_behind_a_directive_is_nothing_to_do(line: str) -> None:
    assert "line 4" not in to_do(f"{PBS}#PBS {line}\n{END}")


def test_what_stands_before_a_comment_is_judged_as_without_it() -> None:
    text = f"{PBS}#PBS -N sim   # name of job\n#PBS # nothing else\n{END}"
    ported = port(text, source=None, to="polaris")
    assert ported.settings["name"] == "sim"
    assert fate(ported, 4)[0] == "kept"
    assert fate(ported, 5) == ("left", "a comment")


@in_one_test(
    "line, said",
    [
        ("-N sim name of job", "line 4: name: qsub has no such option"),
        ("-N sim / name", "line 4: /: qsub has no such option"),
        ("-A #ACCOUNT#", "account: nn0000k is a placeholder"),
    ],
)
def test_words_that_no_sign_makes_a_comment_are_named(line: str, said: str) -> None:
    assert said in to_do(f"{PBS}#PBS {line}\n{END}")


def test_a_sign_within_a_word_begins_no_comment() -> None:
    assert port(f"{PBS}#PBS -N run#2\n{END}", source=None, to="olivia").settings["name"] == "run#2"


@in_one_test(
    "head, lost",
    [
        ("#SBATCH --mail-type=begin\n#SBATCH --mail-user=a@b.de", ""),
        ("#SBATCH --mail-type=end,fail", ""),
        ("#SBATCH --mail-user=%u@b.de\n#SBATCH --mail-type=end", "%u@b.de"),
        ("#SBATCH --mail-user=a.b@c.de\n#SBATCH --mail-type=end", ""),
        ("#SBATCH --mail-type=begin,time_limit_80", "time_limit_80"),
        ("#SBATCH --mail-type=Requeue,END", "Requeue"),
        ("#PBS -m abe", ""),
        ("#PBS -m bej", "j"),
        ("#$ -m eas", "s"),
    ],
)
def test_events_of_mail_are_words_or_letters_by_their_scheduler(head: str, lost: str) -> None:
    to = "polaris" if "SBATCH" in head else "olivia"
    ported = port(f"#!/bin/bash\n{head}\nmpirun -n 4 ./a\n", source=None, to=to)
    (mail,) = [one for one in ported.report.changed if one.line == 2]
    said = f"left out: {lost}: mail is sent"
    assert (said in mail.why) if lost else ("left out" not in mail.why)


@in_one_test(
    "line, named",
    [
        ("#PBS -A abc12", True),
        ("#PBS -P 12004268", True),
        ("#$ -P abc12", True),
        ("#$ -A abc12", True),
        ("#BSUB -G abc12", True),
        ("#SBATCH -A abc12", True),
        ("#PBS -p 100", False),
        ("#SBATCH --wckey=abc12", False),
    ],
)
def test_each_way_to_name_a_project_is_one_account_to_fill_in(line: str, named: bool) -> None:
    ported = port(f"#!/bin/bash\n{line}\nmpirun -n 4 ./a\n", source=None, to="isambard-ai")
    assert ("account" in ported.settings) is named
    assert str(ported.to_do).count("is a placeholder: fill in your account") == named
    assert "account: none" not in str(ported.report)


@in_one_test(
    "line, of_threads",
    [
        ('#BSUB -R "rusage[mem=64000]"', False),
        ("#PBS -l select=1:ncpus=16:ompthreads=16", True),
        ("#PBS -l select=1:ncpus=16:mem=9000gb", False),
    ],
)
def test_threads_are_named_only_where_a_directive_says_some(line: str, of_threads: bool) -> None:
    said = to_do(f"#!/bin/bash\n{line}\nmpirun -n 4 ./a\n")
    assert "no part of the job file says it" in said
    assert ("set OMP_NUM_THREADS in env" in said) is of_threads
