"""The script of a prepared job, and the folder ``files`` that it uses. A dry run ends here."""

import json
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from hpclaunch.atomic_file import new_folder, write_files
from hpclaunch.errors import BadInputError
from hpclaunch.host.host_interface import Host
from hpclaunch.job.prepare import Prepared
from hpclaunch.job.program_check import missing_here, option_problems, unknown_program
from hpclaunch.job.store import Store
from hpclaunch.job.submission import SCRIPT
from hpclaunch.package_data import resource_dir
from hpclaunch.plan import plan_file
from hpclaunch.plan.command_rules import script_problems
from hpclaunch.plan.layout import JobPlace, LaunchPlan
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.preflight_plan import PROBE, STAGE
from hpclaunch.plan.script_body import RAY_NODE
from hpclaunch.plan.script_text import render
from hpclaunch.plan.software_choice import OPEN
from hpclaunch.plan.startup_plan import STACKS, STARTUP, STARTUP_FILES, needs_startup


def script_of(prepared: Prepared, place: JobPlace, *, plain: bool = False) -> tuple[LaunchPlan, str]:
    """Return a prepared job's plan, with all reasons not to submit it, and script; ``plain``: `render`."""
    from hpclaunch.job.template_files import script_templates  # it loads Jinja, while git looks at the code

    plan = make_plan(prepared.request, prepared.profile, prepared.topology, place, prepared.settings)
    problems = (*prepared.job.problems, *plan.problems, *script_problems(plan, prepared.job.commands))
    open_before = OPEN.format("mpi4py") if place.mpi_library else None  # it was found since
    notes = (note for note in prepared.job.notes if not (open_before and note.startswith(open_before)))
    plan = replace(plan, warnings=(*notes, *plan.warnings), problems=problems)
    return plan, render(plan, place, script_templates(), plain=plain)


def dry_run(prepared: Prepared, *, plain: bool = False, files: str | None = None) -> tuple[LaunchPlan, str]:
    """Return plan and script; changes no file, asks no MPI. ``plain``: `render`; ``files``: their folder."""
    place = JobPlace(
        files=files, python=prepared.python, after=jobs_before(prepared), allocation=prepared.allocation
    )
    plan, script = script_of(prepared, place, plain=plain)
    found = option_problems(prepared.request)
    if plan.scheduler.starts_at_once:
        found += unknown_program(prepared.request)
    if prepared.host is None or prepared.sync is not None:
        found += missing_here(prepared.request, prepared.sync or Path(prepared.workdir))
    return replace(plan, problems=(*plan.problems, *found)), script


def jobs_before(prepared: Prepared, store: Store | None = None, host: Host | None = None) -> tuple[str, ...]:
    """Return the scheduler's ids of the jobs that --after names; without ``host`` as they were last known."""
    if not prepared.request.after:
        return ()
    from hpclaunch.job.dependencies import settle_after  # few jobs wait for others
    from hpclaunch.job.refresh import refresh

    store = store or Store()
    fresh = partial(refresh, store, host) if host else lambda record: record
    return settle_after(prepared.request, prepared.scheduler, store, fresh)


def job_files(plan: LaunchPlan) -> dict[str, bytes]:
    """Return the files of a job, by their paths below the folder ``files``."""
    remote = resource_dir("remote")
    copied = {
        name: name
        for name in (plan_file.JOB_START, *plan_file.job_shell_files(plan), *plan_file.rank_shell_files(plan))
    }
    if text := plan.launcher.text_file:
        copied[text] = text
    if plan.framework.per_node:
        copied[RAY_NODE] = RAY_NODE
    if not plan.request.no_sample:
        copied[plan_file.SAMPLER] = plan_file.SAMPLER
    if plan.preflight is not None:
        copied[PROBE] = PROBE
    if needs_startup(plan):
        copied |= {name: f"{STARTUP}/{there}" for name, there in STARTUP_FILES.items()}
    files = {there: (remote / name).read_bytes() for name, there in copied.items()}
    if plan.supervision is not None and plan.supervision.look:
        for file, modules in ROLL_CALL_FILES.items():
            files[f"{STACKS}/{file}"] = one_text(modules).encode()
    if plan.staging is not None:
        files[STAGE] = one_text(STAGING).encode()
    if plan.request.command.bundled and not plan.scheduler.starts_at_once:
        files |= _runner()
    return {plan_file.PLAN: plan_file.plan_text(plan).encode(), **files}


def save_script(prepared: Prepared, folder: Path) -> tuple[LaunchPlan, str]:
    """Write a job's script and its files into a new folder, all or none; return the plan and the script.

    They work together when the script is submitted by hand, where the nodes see the folder. Raises
    BadInputError where it is there already or cannot be made.
    """
    folder = folder.absolute()
    plan, script = dry_run(prepared, files=str(folder / plan_file.FOLDER))
    try:
        with new_folder(folder) as new:
            files = {f"{plan_file.FOLDER}/{name}": data for name, data in job_files(plan).items()}
            write_files(new, {SCRIPT: script.encode(), **files})
            (new / SCRIPT).chmod(0o755)
    except OSError as error:
        if folder.exists():
            raise BadInputError(f"--save {folder}: it is there already", "name a new folder") from None
        raise BadInputError.case("save: not written", folder=folder, error=error) from None
    return plan, script


def _runner() -> dict[str, bytes]:
    """Return the training runner: compute nodes need no hpclaunch installed."""
    source = resource_dir("train")
    runner = {
        f"runner/hpclaunch/train/{file.relative_to(source).as_posix()}": file.read_bytes()
        for file in sorted(source.rglob("*.*"))
        if file.suffix in (".py", ".json", ".txt")
    }
    return {"runner/hpclaunch/__init__.py": b"", **runner}


LOOK = ("words", "look")
"""The processes of a job on a node."""
STANDS = (*LOOK, "rank_stands")
"""Where the processes of a job stand on a node."""
STAGING = ("words", "safe_unpack", "archive_reader", "stage_sources", "stage_images", "stage_copy", "stage")
"""Copies data to the nodes."""
ROLL_CALL_FILES = {"stands.py": STANDS, "roll_call.py": (*LOOK, "roll_call")}
"""File in the job's folder -> its modules: what is asked on each node, and the roll call of all."""


def one_text(modules: tuple[str, ...]) -> str:
    """Return the text of the last module, with those before it, which it imports, put in; words: a table."""
    folder = resource_dir("remote")
    table = f"WORDS = {json.loads((folder / 'words.json').read_text('utf-8'))!r}"
    texts = (table if name == "words" else (folder / f"{name}.py").read_text() for name in modules)
    *imported, program = zip(modules, texts, strict=True)
    lines = ["import sys, types"]
    for name, text in imported:
        whole = f"hpclaunch.remote.{name}"
        lines.append(f"sys.modules[{whole!r}] = types.ModuleType({whole!r})")
        lines.append(f"exec({text!r}, sys.modules[{whole!r}].__dict__)")
    return "\n".join([*lines, f"exec({program[1]!r})", ""])
