"""``hpclaunch check``, and ``submit --check``: whether a machine meets the requirements of a job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._options import options, refuse_mixtures
from hpclaunch.cli._terminal import printed, terminal_table
from hpclaunch.errors import EXIT_FAILED, BadInputError
from hpclaunch.text_table import to_stderr

if TYPE_CHECKING:
    from hpclaunch.check.check_report import Report, Requirement
    from hpclaunch.check.run_check import CheckRequest
    from hpclaunch.host.host_interface import Host
    from hpclaunch.job.prepare import Prepared
    from hpclaunch.plan.request import JobRequest
    from hpclaunch.site.schema import Environment, SiteProfile


@click.command()
@options("check")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Check that Horovod, MPI and launcher meet the job's requirements; print remedies for this site."""
    refuse_mixtures("check", options)
    if options["folder"] is not None and options["framework"] not in (None, "horovod"):
        raise click.UsageError("--from and --framework: the captured outputs are those of a Horovod build")
    request = _check_request(options)
    found, unmet = _from_folder(options["folder"], request) if options["folder"] else _live(request)
    _refuse_no_python(found, options)
    if not printed(found):
        click.echo(verdict_table(found, unmet, of_text=options["folder"] is not None))
        instead = [name for check in found.checks for name in check.instead]
        if instead and options["framework"] is None and any("horovod" in need.names for need in unmet):
            words = " or ".join(f"--framework {name}" for name in instead)
            click.echo(f"without Horovod: hpclaunch check {words} judges what is here")
    ctx.exit(0 if found.ok else EXIT_FAILED)


def _refuse_no_python(found: Report, options: dict[str, Any]) -> None:
    """Refuse ``--python`` that names no program; a node of several reports it instead."""
    wrong = next((check for check in found.checks if check.name == "python"), None)
    if wrong is not None and options["python"] and wrong.status == "missing" and not options["alone"]:
        raise BadInputError(f"--python {wrong.evidence}", "name the Python that trains")


def _check_request(options: dict[str, Any]) -> CheckRequest:
    from hpclaunch.check.requirements import parse_require
    from hpclaunch.check.run_check import CheckRequest
    from hpclaunch.site.load_profile import load_site

    site, file = options["site"] or _site_here(options), options["job_file"]
    profile = load_site(site) if site else None
    asked = read_environment(file) if file is not None else None
    name = options["framework"]
    other_framework = {"horovod": False, "module": name, "ranks_use_mpi": name == "mpi4py"}
    return CheckRequest(
        profile=profile,
        site=site,
        environment=asked or (profile.environment if profile else None),
        job_file=str(file) if file is not None else None,
        mpi_plugin=_open_plugin(profile, options) if profile else None,
        require=parse_require(options["require"]),
        without_ranks=options["alone"],
        import_limit_s=options["limit"],
        **{key: options[key] for key in ("python", "nodes", "space", "allreduce")},
        **({} if name in (None, "horovod") else other_framework),
    )


def _site_here(options: dict[str, Any]) -> str | None:
    """Return the site of this machine, as submit detects it; None: unknown, or the outputs of another one."""
    if options["folder"] is not None or options["alone"]:
        return None
    from hpclaunch.site.detect import detect_here

    found = detect_here()
    if found.site:
        to_stderr(f"site {found.site}, detected: {found.reason}")
    return found.site


def read_environment(path: Path) -> Environment | None:
    """Return the ``environment`` of a YAML job file; None: it has none. Other keys are ignored."""
    from hpclaunch.site.schema import Environment
    from hpclaunch.site.validate import to_struct
    from hpclaunch.site.yaml_tree import read_tree

    tree = read_tree(path)
    if not isinstance(tree.value, dict):
        raise BadInputError(f"{tree.where}: not a mapping", "write it as environment: {modules: [...]}")
    below = tree.value.get("environment")
    return None if below is None or below.value is None else to_struct(below, Environment)


def _open_plugin(profile: SiteProfile, options: dict[str, Any]) -> str | None:
    """Choose srun's plugin as submit does, if the profile leaves it open and ranks can be started."""
    if options["folder"] is not None or options["alone"] or "SLURM_JOB_ID" not in os.environ:
        return None
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.job.mpi_plugin import choose_plugin
    from hpclaunch.plan.request import Command, JobRequest

    job = JobRequest(site=profile.name, command=Command(argv=(), bundled=True), python=options["python"])
    chosen = choose_plugin(job, profile, LocalHost())
    return chosen.name if chosen else None


def _from_folder(folder: Path, request: CheckRequest) -> tuple[Report, Sequence[Requirement]]:
    """Judge captured text; what text cannot show is not required, except by ``--require``."""
    from hpclaunch.check.captured_folder import judge_folder
    from hpclaunch.check.check_report import unmet_requirements
    from hpclaunch.check.judge_build import Remedies
    from hpclaunch.check.run_check import framework_for_remedies

    if not folder.is_dir():
        raise BadInputError(f"{folder}: no such folder", "name the folder with check-build.txt in it")
    remedies = Remedies(profile=request.profile, framework=framework_for_remedies(request.require))
    found, needs = judge_folder(folder, remedies, request.require)
    return found, unmet_requirements(found, needs)


def _live(request: CheckRequest) -> tuple[Report, Sequence[Requirement]]:
    from hpclaunch.check.check_report import unmet_requirements
    from hpclaunch.check.run_check import requirements, run_check
    from hpclaunch.host.this_machine import LocalHost

    found = run_check(LocalHost(), request)
    return found, unmet_requirements(found, requirements(request))


def verdict_table(
    found: Report, unmet: Sequence[Requirement], *, err: bool = False, of_text: bool = False
) -> str:
    """Return the verdicts as a table: name, status, evidence; below each its remedy if it is needed.

    ``of_text``: captured text was judged, which cannot show everything.
    """
    from hpclaunch.check.requirements import LAUNCH_LAYER

    rows: list[tuple[str, str, str]] = []
    # If one of several checks is enough, one remedy is enough, too.
    needed = {*LAUNCH_LAYER, *("pytorch" if "pytorch" in need.names else need.names[0] for need in unmet)}
    shown: set[str] = set()
    for check in found.checks:
        rows.append((check.name, check.status, check.evidence))
        # What is not required may be missing: its remedy is in the JSON.
        if check.remedy and check.name in needed and check.remedy not in shown:
            shown.add(check.remedy)
            rows.append(("", "advice" if check.status == "have" else "->", check.remedy))
    lines = [terminal_table(rows, states=1, err=err)] if rows else []
    lines += [f"requirement not met: {need} ({need.reason})" for need in unmet]
    met = "all requirements that this text can show are met" if of_text else "all requirements are met"
    lines.append(met if found.ok else "not all requirements are met")
    return "\n".join(lines)


def check_request_for(prepared: Prepared) -> CheckRequest:
    """Return the check of what the job needs: Horovod only for that framework, ranks only if they use MPI."""
    from hpclaunch.check.check_report import Requirement
    from hpclaunch.check.run_check import CheckRequest
    from hpclaunch.plan.frameworks import interpreter, uses_mpi

    request = prepared.request
    horovod = request.framework == "horovod"
    bundled = request.command.bundled and request.python is None
    by_launcher = Requirement(names=("mpi",), reason="the controller of ranks that a launcher starts")
    return CheckRequest(
        profile=prepared.profile,
        site=request.site,
        environment=request.environment,
        python=prepared.python if bundled and prepared.python else interpreter(request, prepared.profile),
        mpi_plugin=request.mpi,
        space=request.space,
        extra_requirements=(by_launcher,) if horovod else (),
        horovod=horovod,
        ranks_use_mpi=uses_mpi(request, prepared.settings),
        module=_module(request),
        gpu_build=False,  # a job may leave the GPUs out
    )


def _module(request: JobRequest) -> str | None:
    from hpclaunch.plan.layout import framework_of

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
