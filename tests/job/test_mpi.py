"""Which plugin of srun --mpi is chosen: what srun offers, and what the runner's own Python needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.job.mpi_plugin import choose_plugin
from hpclaunch.plan.request import Command, JobRequest, Setting
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.schema import Environment
from tests.in_one_test import in_one_test
from tests.job.played_slurm import PlayedHost

LIST = "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n"
OPEN_MPI = "Open MPI v5.0.3, package: Open MPI root@build Distribution, ident: 5.0.3\0\n"
MPICH = "MPICH Version:      4.3.0\nMPICH Release date: Mon Feb  3 09:09:47 AM CST 2025\n"


class JobPlace(PlayedHost):
    """A machine where srun and Python answer what a test says; None: Python does not have mpi4py."""

    def __init__(self, offered: str, library: str | None) -> None:
        self.offered, self.library, self.asked = offered, library, list[str]()

    def answer(self, argv: Sequence[str]) -> CommandResult | None:
        self.asked.append(argv[0])
        if argv[0] == "srun":
            return CommandResult(exit_code=0, stdout=self.offered, stderr="")
        if argv[0] == "missing":
            raise RefusedError("missing: no such program")
        return CommandResult(exit_code=int(self.library is None), stdout=self.library or "", stderr="")


def chosen(target: JobPlace, **request: object) -> tuple[str | None, str]:
    usual = {"site": "generic-slurm", "command": Command(argv=(), bundled=True)}
    plugin = choose_plugin(JobRequest(**{**usual, **request}), load_site("generic-slurm"), target)  # type: ignore[arg-type]
    assert plugin is not None
    return plugin.name, plugin.reason


@in_one_test(
    "library, name, words",
    [
        (OPEN_MPI, "pmix", "Open MPI v5.0.3"),
        (MPICH, "pmi2", "MPICH Version: 4.3.0"),
        ("Intel(R) MPI Library 2021.11 for Linux* OS\n\n", "pmi2", "Intel(R) MPI Library"),
        ("Another MPI 1\n", None, "which plugin fits is not known"),
        (None, "pmix", "python3 names no MPI here (mpi4py), so it is the first that srun --mpi=list offers"),
    ],
)
def test_the_plugin_fits_the_mpi_of_the_runners_python(
    library: str | None, name: str | None, words: str
) -> None:
    plugin, reason = chosen(JobPlace(LIST, library))
    assert (plugin, words in reason) == (name, True), reason


def test_a_plugin_that_is_not_offered_is_not_chosen() -> None:
    plugin, reason = chosen(JobPlace(LIST.replace("pmix", "other"), OPEN_MPI))
    assert plugin is None
    assert "srun does not offer pmix: name one with --mpi" in reason


def test_a_python_that_is_not_there_leaves_it_to_the_list() -> None:
    assert chosen(JobPlace(LIST, OPEN_MPI), python="missing")[0] == "pmix"


def test_the_environment_of_the_job_has_the_python_that_is_asked(tmp_path: Path) -> None:
    """A real shell runs the job's own lines; the Python is a script that answers as MPICH's would."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "activate").write_text(f'PATH="{tmp_path}/bin:$PATH"; echo activated')
    python = tmp_path / "bin" / "its-python"
    python.write_text(f"#!/bin/sh\nprintf '{MPICH}'\n")
    python.chmod(0o755)

    class Shell(JobPlace):
        def answer(self, argv: Sequence[str]) -> CommandResult | None:
            return None if argv[0] == "bash" else super().answer(argv)

    environment = Environment(venv=str(tmp_path))
    plugin, reason = chosen(Shell(LIST, OPEN_MPI), python="its-python", environment=environment)
    assert (plugin, reason) == ("pmi2", "fits the MPI of its-python: MPICH Version: 4.3.0")


@in_one_test(
    "libraries, name, words",
    [
        ("\tlibmpi.so.40 => /x/libmpi.so.40\n\tlibopen-pal.so.80 => /x/y\n", "pmix", "fits libopen-pal.so,"),
        ("\tlibmpi.so.12 => not found\n", "pmi2", "fits libmpi.so.12, with which ./a.out is linked"),
        ("\tlibc.so.6 => /lib/libc.so.6\n", "pmix", "the first that srun --mpi=list offers"),
        (None, "pmix", "the first that srun --mpi=list offers"),
    ],
)
def test_of_another_command_the_linked_mpi_is_asked(libraries: str | None, name: str, words: str) -> None:
    target = JobPlace(LIST, libraries)
    plugin, reason = chosen(target, command=Command(argv=("./a.out",)))
    assert (plugin, target.asked) == (name, ["srun", "sh"])
    assert words in reason


def test_a_program_of_another_framework_that_imports_mpi4py_gets_the_plugin_of_its_mpi() -> None:
    """Without the import the first plugin of the list would start each rank alone."""
    target = JobPlace(LIST, MPICH)
    request = JobRequest(site="generic-slurm", command=Command(argv=("python", "t.py")), framework="torch")
    found = Setting(name="mpi4py", value="used, too", origin="found: t.py, line 1: imports mpi4py")
    profile = load_site("generic-slurm")
    plugins = [choose_plugin(request, profile, target, settings) for settings in ((), (found,))]
    assert [plugin.name for plugin in plugins if plugin] == ["pmix", "pmi2"]


def test_a_linked_mpi_whose_plugin_is_not_offered_leaves_it_to_the_list() -> None:
    target = JobPlace("MPI plugin types are...\n\tnone\n\tpmix\n", "\tlibmpi.so.12 => /x\n")
    assert chosen(target, command=Command(argv=("./a.out",)))[0] == "pmix"


@in_one_test("site, mpi", [("generic-slurm", "pmi2"), ("olivia", None), ("polaris", None)])
def test_nothing_is_asked_where_the_choice_is_made(site: str, mpi: str | None) -> None:
    target = JobPlace(LIST, MPICH)
    request = JobRequest(site=site, command=Command(argv=(), bundled=True), mpi=mpi)
    assert choose_plugin(request, load_site(site), target) is None
    assert target.asked == []
