"""From settings to a job that is ready to be planned: its site, its node, its allocation, its software."""

import datetime as dt
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hpclaunch.errors import BadInputError, note_text
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.find_out import find_out, seen_in
from hpclaunch.job.record import JobRecord
from hpclaunch.job.settings_files import refused_by_centre, sites_without_profile
from hpclaunch.plan.layout import KnownJob
from hpclaunch.plan.request import JobRequest, Problem, Setting
from hpclaunch.plan.request_rules import begin_time
from hpclaunch.plan.request_texts import check_secrets, check_texts
from hpclaunch.plan.settings import JobSettings, Layer, highest, merge, setting_of
from hpclaunch.plan.software_choice import with_software
from hpclaunch.scheduler.scheduler_interface import Allocation, Scheduler
from hpclaunch.site.load_profile import is_path, load_all, load_site, site_reference
from hpclaunch.site.profile_node import VISIBLE, site_topology
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import base_here, base_profiles, site_scheduler
from hpclaunch.topology.node_topology import NodeTopology


class JobStart(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how a job is started."""

    interactive: bool = False
    host: str | None = None
    sync: Path | None = None


class SubmitMode(JobStart, frozen=True, kw_only=True):
    """How a job is to be started."""

    here: bool | None = None


_USUAL = SubmitMode()


class Prepared(JobStart, frozen=True, kw_only=True):
    """A job before it has a place: settings merged, site and node known."""

    asked: KnownJob
    job: KnownJob
    topology: NodeTopology | None
    scheduler: Scheduler
    allocation: Allocation | None = None
    workdir: str
    resubmit_of: str | None = None

    @property
    def request(self) -> JobRequest:
        """The request, with the facts found for it."""
        return self.job.request

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The same with origins."""
        return self.job.settings

    @property
    def profile(self) -> SiteProfile:
        """The site, for this job."""
        return self.job.profile

    @property
    def waits(self) -> bool:
        """Whether the command that starts it usually waits for its end."""
        return self.scheduler.starts_at_once or self.allocation is not None or self.interactive

    @property
    def python(self) -> str | None:
        """This interpreter for jobs on this machine, None for jobs elsewhere."""
        return sys.executable if self.scheduler.starts_at_once else None


def prepare(layers: list[Layer], mode: SubmitMode = _USUAL) -> Prepared:
    """Settle the site, merge the settings, load the profile and its node (for ``local`` the live one)."""
    site, origin = _site(layers, mode.host)
    request, settings = merge(layers, site_reference(site), origin)
    named = highest(layers, "command")
    workdir = os.getcwd() if mode.host is None else ""
    return settle(request, settings, mode, workdir, is_file=named is not None and named.is_file)


def settle(
    request: JobRequest,
    settings: tuple[Setting, ...],
    mode: SubmitMode,
    workdir: str,
    *,
    is_file: bool = False,
) -> Prepared:
    """Load the request's profile and its node, and look whether there is an allocation to run in.

    ``is_file``: see `Layer`. Raises BadInputError where the job cannot be started in this mode.
    """
    check_texts(request)
    profile = load_site(request.site)
    scheduler = site_scheduler(profile)
    check_secrets(request, settings, scheduler)
    host = _remote(mode, profile, scheduler)
    allocation = None if host else _allocation(mode, scheduler)
    request, settings = _with_nodes(request, settings, allocation)
    if host is None and any(each.name == "remote-dir" and each.origin == "command line" for each in settings):
        raise BadInputError.case("remote-dir: no host", request=request)
    request, settings = with_software(request, settings, profile)
    without_queue = _without_queue(mode, scheduler, allocation)
    asked = KnownJob(
        request=request,
        settings=settings,
        profile=profile,
        is_file=is_file,
        problems=(*without_queue, *refused_by_centre(settings)),
        notes=(*sites_without_profile(), *_over_already(request, scheduler, host)),
    )
    # On another host the files are read when there is a connection to it.
    folder = mode.sync or (Path(workdir) if host is None else None)
    cluster = LocalHost() if host is None and allocation is None else None
    job = find_out(asked, *seen_in(folder), cluster, here=host is None)
    job, topology = _on_node(job, scheduler)
    return Prepared(
        asked=asked,
        job=job,
        topology=topology,
        scheduler=scheduler,
        allocation=allocation,
        interactive=_is_interactive(mode, job.request, scheduler, allocation),
        workdir=workdir,
        host=host,
        sync=mode.sync,
    )


def _over_already(request: JobRequest, scheduler: Scheduler, host: str | None) -> Iterator[str]:
    """Yield a note where the time before which the job must not start is past."""
    begin = begin_time(scheduler, request)
    zones = dt.timedelta(hours=26 if host else 0)  # a host may be in another one, 26 hours away at most
    if begin is not None and begin + zones < dt.datetime.now():
        yield note_text("begin: past", begin=request.begin)


def _with_nodes(
    request: JobRequest, settings: tuple[Setting, ...], allocation: Allocation | None
) -> tuple[JobRequest, tuple[Setting, ...]]:
    if allocation is None or request.nodes is not None or request.tasks is not None:
        return request, settings
    origin = f"the allocation {allocation.job_id}"
    said = Setting(name="nodes", value=str(allocation.nodes), origin=origin)
    return msgspec.structs.replace(request, nodes=allocation.nodes), (*settings, said)


def _is_interactive(
    mode: SubmitMode, request: JobRequest, scheduler: Scheduler, allocation: Allocation | None
) -> bool:
    """Tell whether the job is allocated from here; raises BadInputError where it cannot."""
    if not mode.interactive or scheduler.starts_at_once or allocation is not None:
        return False
    if not scheduler.has_interactive:
        raise BadInputError.case("interactive: cannot", scheduler=scheduler)
    for name, value in (("--array", request.array), ("--max-restarts", request.max_restarts)):
        if value:
            raise BadInputError(f"{name} is for jobs in the queue, not for --interactive", "leave one out")
    return True


def _without_queue(
    mode: SubmitMode, scheduler: Scheduler, allocation: Allocation | None
) -> tuple[Problem, ...]:
    if not (mode.interactive and scheduler.starts_at_once and allocation is None):
        return ()
    words = "--interactive has no effect: jobs on this machine start at once and show their output"
    return (Problem(message=words, hint="leave it out"),)


def _remote(mode: SubmitMode, profile: SiteProfile, scheduler: Scheduler) -> str | None:
    """Return the host to submit on; raises BadInputError for what only works on this machine."""
    if mode.host is None:
        if mode.sync is not None:
            raise BadInputError(f"--sync {mode.sync}: there is no --host to copy it to", "leave --sync out")
        return None
    if scheduler.starts_at_once:
        raise BadInputError.case("host: this machine", mode=mode, profile=profile)
    if mode.interactive or mode.here:
        raise BadInputError("--interactive and --here work on this machine only", "leave --host out")
    if mode.sync is not None and not mode.sync.is_dir():
        raise BadInputError(f"--sync {mode.sync}: there is no such folder", "name the folder of your code")
    from hpclaunch.host.ssh_config import split_route  # only for another host

    split_route(mode.host)  # raises BadInputError for another text
    user, at, place = mode.host.rpartition("@")
    if place != "site":
        return mode.host
    if not profile.login.hosts:
        raise BadInputError(f"--host site: the profile {profile.name} names no login host", "name the host")
    jumps = profile.login.proxy_jump
    route = [*(jumps.split(",") if jumps else ()), profile.login.hosts[0]]
    return ",".join(f"{user}{at}{host}" for host in route)


def _on_node(job: KnownJob, scheduler: Scheduler) -> tuple[KnownJob, NodeTopology | None]:
    """Return the job, and the node that it runs on: the profile's, or this machine."""
    if not scheduler.starts_at_once:
        return job, site_topology(job.profile)
    from hpclaunch.topology.sources import read_live

    topology = read_live()
    return msgspec.structs.replace(job, profile=_showing_gpus(job.profile, topology)), topology


def _showing_gpus(profile: SiteProfile, topology: NodeTopology) -> SiteProfile:
    """Return this machine's profile with the variable that shows ranks their GPUs, if the shell has none."""
    if profile.binding.gpu_visible_var:
        return profile
    vendor = topology.gpus[0].vendor if topology.gpus else None
    variable = VISIBLE.get((vendor or "").lower())
    if variable is None or variable in os.environ:
        return profile
    binding = msgspec.structs.replace(profile.binding, gpu_visible_var=variable)
    return msgspec.structs.replace(profile, binding=binding)


def _allocation(mode: SubmitMode, scheduler: Scheduler) -> Allocation | None:
    found = None if mode.here is False else scheduler.allocation(os.environ)
    if found is None and mode.here:
        hint = f"{scheduler.allocation_hint}, or " * bool(scheduler.allocation_hint)
        raise BadInputError.case("here: no allocation", hint=hint)
    return found


def _site_of(host: str) -> tuple[str, str]:
    """Return the one site that has this login host, by its full name; an alias may be of any machine."""
    name = host.rpartition("@")[2].partition(":")[0]
    sites = [site.name for site in load_all()[0].values() if "." in name and name in site.login.hosts]
    if len(sites) != 1:
        known = " or ".join(sites) or "hpclaunch sites list"
        raise BadInputError.case("host: no site", host=host, sites=known)
    return sites[0], f"computed: {name} is its login host"


def _site(layers: list[Layer], host: str | None) -> tuple[str, str]:
    for layer in layers:
        if layer.settings.site is not None:
            return layer.settings.site, layer.origin
    if host is not None:
        return _site_of(host)
    from hpclaunch.site.detect import detect_here  # seldom needed, and it starts programs

    loaded = load_all()
    found = detect_here(loaded)
    for name, error in () if found.site else loaded[1].items():
        raise BadInputError.case("sites: broken", name=name, error=error)
    if found.site is None and not found.evidence and not base_profiles()[base := base_here()].starts_at_once:
        return base, f"computed: {base_profiles()[base].submit_program} is here, and {found.reason}"
    if found.site is None:
        raise BadInputError.case("sites: not named")
    return found.site, f"detected: {found.reason}"


_ADD_UP = ("command", "env", "directives")
_NO_CHANGES = JobSettings()


def repeat(
    record: JobRecord, exclude: tuple[str, ...], mode: SubmitMode, changes: JobSettings = _NO_CHANGES
) -> Prepared:
    """Return the job's request without these nodes; it runs in the folder of the first attempt.

    ``changes``: settings in place of the recorded ones; variables and directives are added to them.
    Dependencies on other jobs (``--after``) and ``--begin`` are dropped. The site's profile is read again.
    Raises BadInputError where the recorded request cannot be used.
    """
    try:
        request = msgspec.convert(record.request, JobRequest)
    except msgspec.ValidationError as error:
        raise BadInputError.case("record: request", record=record, error=error) from None
    left_out = tuple(dict.fromkeys((*request.exclude, *exclude)))
    site = request.site if record.host else os.path.join(record.workdir, request.site)  # of older records
    request = msgspec.structs.replace(request, exclude=left_out, after=(), after_any=False, begin=None)
    if is_path(request.site):
        request = msgspec.structs.replace(request, site=site)
    settings = _recorded_settings(request, record.id, exclude)
    request, settings = _with_changes(request, settings, changes)
    prepared = settle(request, settings, msgspec.structs.replace(mode, host=record.host), record.workdir)
    return msgspec.structs.replace(prepared, resubmit_of=record.id)


def _with_changes(
    request: JobRequest, settings: tuple[Setting, ...], changes: JobSettings
) -> tuple[JobRequest, tuple[Setting, ...]]:
    new = {name: getattr(changes, name) for name in changes.__struct_fields__ if name not in _ADD_UP}
    new = {name: value for name, value in new.items() if value is not None}
    if "site" in new:
        new["site"] = site_reference(new["site"])
    if "exclude" in new:
        new["exclude"] = tuple(dict.fromkeys((*request.exclude, *new["exclude"])))
    told = dict(new)
    if changes.env:
        new["env"] = {**request.env, **changes.env}
        told |= {f"env {name}": value for name, value in changes.env.items()}
    if changes.directives:
        new["directives"] = (*request.directives, *changes.directives)
        told["directive"] = changes.directives
    names = {name.replace("_", "-") if not name.startswith("env ") else name for name in told}
    kept = tuple(setting for setting in settings if setting.name not in names)
    given = (setting_of(name, value, "command line") for name, value in told.items())
    return msgspec.structs.replace(request, **new), (*kept, *given)


def _recorded_settings(request: JobRequest, job_id: str, exclude: tuple[str, ...]) -> tuple[Setting, ...]:
    origin = f"job {job_id}"
    words = ("mnist", *request.command.argv) if request.command.bundled else request.command.argv
    rows: dict[str, object] = {"command": " ".join(words)}
    for name in JobRequest.__struct_fields__:
        value = getattr(request, name)
        if name == "env":
            rows |= {f"env {variable}": text for variable, text in value.items()}
        elif name != "command" and value not in (None, (), {}):
            rows[name] = value
    more = {"exclude": ", --exclude-bad-nodes"} if exclude else {}
    return tuple(setting_of(name, value, origin + more.get(name, "")) for name, value in rows.items())
