"""``hpclaunch check``: is the Horovod build, its MPI and the launcher what a job needs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.errors import EXIT_FAILED, BadInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hpclaunch.check.check_report import Check, Report, Requirement
    from hpclaunch.check.run_check import CheckRequest
    from hpclaunch.site.schema import SiteProfile

_EPILOG = """\b
Examples:
  hpclaunch check
  hpclaunch check --site lumi-g --require mpi,nccl,pytorch
  hpclaunch check --site local --python venv/bin/python --allreduce-test
  hpclaunch check --site olivia --nodes 2        (in an allocation)
  hpclaunch check --from outputs/ --require mpi
"""


@click.command(epilog=_EPILOG)
@click.option("--site", help="Site profile: check in the environment that its jobs have.")
@click.option(
    "--file",
    "job_file",
    type=click.Path(path_type=Path),
    metavar="JOB.yaml",
    help="Job file whose environment is taken.",
)
@click.option(
    "--require",
    multiple=True,
    metavar="NAME,...",
    help="What must be there: mpi, gloo, nccl, rocm, cuda, pytorch, ..; 'mpi|gloo': either.",
)
@click.option(
    "--from", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Judge captured outputs."
)
@click.option("--nodes", type=click.IntRange(min=1), help="Ask each node of this allocation.")
@click.option("--python", help="Interpreter that will train. Default: the site's, or python3.")
@click.option("--allreduce-test", "allreduce", is_flag=True, help="Sum known values over ranks, exactly.")
@click.option("--space", multiple=True, metavar="FOLDER", help="Look at free space and inodes there.")
@click.option(
    "--limit",
    type=click.FloatRange(min=1),
    default=120.0,
    show_default=True,
    help="Seconds an import may take.",
)
@click.option("--alone", is_flag=True, hidden=True, help="One of several nodes: start no ranks.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Say what a Horovod build and its launcher have, what is missing, and what to do about it here.

    Each import runs in a process of its own with a time limit. Exit status 0 when all that is required holds,
    1 otherwise.
    """
    _refuse_mixtures(options)
    request = _check_request(options)
    found, needs = _from_folder(options["folder"], request) if options["folder"] else _live(request)
    if options["as_json"]:
        import msgspec

        click.echo(json.dumps(msgspec.to_builtins(found)))
    else:
        click.echo(verdict_table(found, needs))
    ctx.exit(0 if found.ok else EXIT_FAILED)


def _refuse_mixtures(options: dict[str, Any]) -> None:
    """Refuse options that contradict each other, as wrong usage."""
    if options["folder"] is None:
        return
    for name, flag in (("nodes", "--nodes"), ("allreduce", "--allreduce-test"), ("space", "--space")):
        if options[name]:
            raise click.UsageError(f"--from beside {flag}: captured outputs are judged, nothing is run")


def _check_request(options: dict[str, Any]) -> CheckRequest:
    from hpclaunch.check.requirements import parse_require
    from hpclaunch.check.run_check import CheckRequest
    from hpclaunch.site.load_profile import load_site
    from hpclaunch.software.read_environment import read_environment

    site, file = options["site"], options["job_file"]
    if file is not None and site is None:
        raise click.UsageError("--file without --site: its environment is that of a job on a site")
    profile = load_site(site) if site else None
    asked = read_environment(file) if file is not None else None
    return CheckRequest(
        profile=profile,
        site=site,
        environment=asked or (profile.environment if profile else None),
        job_file=str(file) if file is not None else None,
        python=options["python"],
        mpi_plugin=_open_plugin(profile, options) if profile else None,
        require=parse_require(options["require"]),
        nodes=options["nodes"],
        space=options["space"],
        allreduce=options["allreduce"],
        without_ranks=options["alone"],
        import_limit_s=options["limit"],
    )


def _open_plugin(profile: SiteProfile, options: dict[str, Any]) -> str | None:
    """Choose srun's plugin as submit does, where the profile leaves it open and ranks can be started."""
    if options["folder"] is not None or options["alone"] or "SLURM_JOB_ID" not in os.environ:
        return None
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.job.mpi_plugin import choose_plugin
    from hpclaunch.plan.request import Command, JobRequest

    job = JobRequest(site=profile.name, command=Command(argv=(), bundled=True), python=options["python"])
    chosen = choose_plugin(job, profile, LocalHost())
    return chosen.name if chosen else None


def _from_folder(folder: Path, request: CheckRequest) -> tuple[Report, Sequence[Requirement]]:
    """Judge captured text; what nobody captured is not required, except by ``--require``."""
    from hpclaunch.check.captured_folder import judge_folder
    from hpclaunch.check.check_report import make_report, unmet_requirements
    from hpclaunch.check.remedies import Remedies
    from hpclaunch.check.run_check import framework_meant

    if not folder.is_dir():
        raise BadInputError(f"{folder}: no such folder", "name the folder with check-build.txt in it")
    remedies = Remedies(profile=request.profile, framework=framework_meant(request.require))
    checks = judge_folder(folder, remedies)
    needs = request.require or _captured_requirements(request.profile, checks)
    found = make_report(checks, needs)
    no_plugin = any(check.name == "mpi-plugin" and check.status == "missing" for check in checks)
    if no_plugin and not request.require:
        import msgspec

        found = msgspec.structs.replace(found, ok=False)
    return found, unmet_requirements(found, needs)


def _captured_requirements(profile: SiteProfile | None, checks: Sequence[Check]) -> tuple[Requirement, ...]:
    """Return the requirements that captured text can show: none where only srun's plugins were captured."""
    from hpclaunch.check.requirements import default_requirements, site_requirements

    if all(check.name == "mpi-plugin" for check in checks):
        return ()
    needs = site_requirements(profile) if profile else default_requirements(frameworks=False)
    return tuple(need for need in needs if "gpu-arch" not in need.names)


def _live(request: CheckRequest) -> tuple[Report, Sequence[Requirement]]:
    from hpclaunch.check.check_report import unmet_requirements
    from hpclaunch.check.run_check import requirements, run_check
    from hpclaunch.host.this_machine import LocalHost

    found = run_check(LocalHost(), request)
    return found, unmet_requirements(found, requirements(request))


def verdict_table(found: Report, unmet: Sequence[Requirement]) -> str:
    """Lay the verdicts out: name, status, evidence; the remedy below where one is needed."""
    from hpclaunch.check.requirements import LAUNCH_LAYER
    from hpclaunch.text_table import text_table

    rows: list[tuple[str, str, str]] = []
    # Of several that would do, one remedy is enough.
    needed = {*LAUNCH_LAYER, *("pytorch" if "pytorch" in need.names else need.names[0] for need in unmet)}
    said: set[str] = set()
    for check in found.checks:
        rows.append((check.name, check.status, check.evidence))
        # What nobody needs may well be missing: its remedy is in the JSON.
        if check.remedy and check.name in needed and check.remedy not in said:
            said.add(check.remedy)
            rows.append(("", "advice" if check.status == "have" else "->", check.remedy))
    lines = [text_table(rows)] if rows else []
    for need in unmet:
        lines.append(f"required and not there: {need} ({need.reason})")
    lines.append("all that is required is there" if found.ok else "not all that is required holds")
    return "\n".join(lines)
