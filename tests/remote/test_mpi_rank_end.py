"""What a rank's shell does after the program where mpiexec is hydra, and nothing under Open MPI."""

from __future__ import annotations

import os
import subprocess

from hpclaunch.package_data import resource_dir
from tests.in_one_test import in_one_test

# As rank.sh: with a function for the end the shell stays, else it becomes the program.
SHELL = """
hpclaunch_rank_over=hpclaunch_mpi_rank_end
. "$1"
sleep() { echo waits; }
[ -z "$hpclaunch_rank_over" ] || { "$hpclaunch_rank_over" "$2"; echo over; exit 0; }
echo becomes the program
"""


@in_one_test(
    "code, variables, printed",
    [
        (7, {"HYDI_CONTROL_FD": "7"}, "waits\ncmd=abort exitcode=7\nover\n"),
        (0, {"HYDI_CONTROL_FD": "7"}, "over\n"),
        (143, {"HYDI_CONTROL_FD": "7"}, "over\n"),
        (7, {}, "becomes the program\n"),  # PMI_FD alone: Slurm's pmi2, Flux
        (7, {"HYDI_CONTROL_FD": "7", "OMPI_COMM_WORLD_RANK": "3"}, "becomes the program\n"),
    ],
)
def test_a_failed_rank_ends_the_job_under_hydra_alone(
    code: int, variables: dict[str, str], printed: str
) -> None:
    own = {"PATH": os.environ["PATH"], "RANK": "3", "PMI_FD": "1", **variables}
    words = ["bash", "-c", SHELL, "rank", str(resource_dir("remote") / "mpi_rank_end.sh"), str(code)]
    said = subprocess.run(words, capture_output=True, text=True, env=own)
    assert said.stdout == printed
    named = f"hpclaunch: task rank 3 on host {os.uname().nodename} failed (Exit {code})\n"
    assert said.stderr == (named if "cmd=abort" in printed else "")


def test_the_shell_lives_on_where_hydra_has_closed_its_end() -> None:
    script = '{ sleep 0.3; . "$1"; sleep() { :; }; hpclaunch_mpi_rank_end 7; echo exits >&2; } | true'
    own = {"PATH": os.environ["PATH"], "RANK": "3", "PMI_FD": "1", "HYDI_CONTROL_FD": "7"}
    words = ["bash", "-c", script, "rank", str(resource_dir("remote") / "mpi_rank_end.sh")]
    assert subprocess.run(words, capture_output=True, text=True, env=own).stderr.endswith("(Exit 7)\nexits\n")
