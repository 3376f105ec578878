"""``submit --check``: check what a job needs, on the submitting machine, before it is queued. No command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hpclaunch.check.check_report import Report
    from hpclaunch.check.run_check import CheckRequest
    from hpclaunch.host.host_interface import Host
    from hpclaunch.job.prepare import Prepared
    from hpclaunch.plan.request import JobRequest


def check_request_for(prepared: Prepared) -> CheckRequest:
    """Return the check of what the job needs.

    It includes a Horovod build only if the framework is Horovod, and a start of ranks only if they use MPI.
    """
    from hpclaunch.check.check_report import Requirement
    from hpclaunch.check.run_check import CheckRequest
    from hpclaunch.plan.framework_notes import uses_mpi
    from hpclaunch.plan.frameworks import interpreter

    request = prepared.request
    horovod = request.framework == "horovod"
    by_launcher = Requirement(names=("mpi",), reason="the controller of ranks that a launcher starts")
    return CheckRequest(
        profile=prepared.profile,
        site=request.site,
        environment=request.environment,
        python=_python(prepared) or interpreter(request, prepared.profile),
        mpi_plugin=request.mpi,
        space=request.space,
        extra_requirements=(by_launcher,) if horovod else (),
        horovod=horovod,
        ranks_use_mpi=uses_mpi(request, prepared.settings),
        module=_module(request),
        gpu_build=False,  # a job may leave the GPUs out
    )


def _python(prepared: Prepared) -> str | None:
    """Return this interpreter for the bundled runner on this machine."""
    from hpclaunch.job.prepare import python_here

    bundled = prepared.request.command.bundled and prepared.request.python is None
    return python_here(prepared.profile) if bundled else None


def _module(request: JobRequest) -> str | None:
    from hpclaunch.plan.frameworks import framework_of

    if request.command.bundled:
        return "mpi4py"
    return None if request.framework == "horovod" else framework_of(request).module


def say_what(prepared: Prepared) -> None:
    """Print what would be checked; a dry run checks nothing."""
    from hpclaunch.check.run_check import requirements

    check_request = check_request_for(prepared)
    needs = [f"{need} ({need.reason})" for need in requirements(check_request) if need.names != ("imports",)]
    needs += [f"room in {folder}" for folder in check_request.space]
    module = f"that {check_request.python} imports {check_request.module}" if check_request.module else ""
    wanted = "; ".join(filter(None, ("the job's environment", module, *needs)))
    click.echo(f"hpclaunch: before queueing --check would check: {wanted}", err=True)


def ask(prepared: Prepared, host: Host) -> Report:
    """Run the check; print what is missing, with remedies. Raises RefusedError."""
    import msgspec

    from hpclaunch.check.check_report import unmet_requirements
    from hpclaunch.check.run_check import requirements, run_check
    from hpclaunch.cli.check import verdict_table
    from hpclaunch.job.mpi_plugin import choose_plugin

    check_request = check_request_for(prepared)
    if prepared.allocation and (
        chosen := choose_plugin(prepared.request, prepared.profile, host, prepared.settings)
    ):
        check_request = msgspec.structs.replace(check_request, mpi_plugin=chosen.name)
    # This shell's variables about an allocation do not describe another host.
    found = run_check(host, check_request, os.environ if prepared.allocation else {})
    if not found.ok:
        unmet = unmet_requirements(found, requirements(check_request))
        click.echo(verdict_table(found, unmet, err=True), err=True)
        click.echo("hpclaunch: nothing was submitted: --check found missing requirements", err=True)
    return found
