"""The needs of each framework in a job's script, by its row in ``frameworks.json``, and notes about it. Pure.

``--framework`` sets what is in its row and nothing else; the row names its sources. GPUs: `layout.py`.
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import PurePath

from msgspec.structs import replace

from hpclaunch.errors import BadInputError, note_text
from hpclaunch.plan.layout import JobLayout, LaunchPlan, framework_of, sharing_note
from hpclaunch.plan.program import MPI
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.plan.script_commands import inner_words, option_values
from hpclaunch.plan.worker_launchers import DEEPSPEED
from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.launcher import Mpiexec
from hpclaunch.site.schema import Environment, FabricPlugin, SiteProfile
from hpclaunch.site.site_scheduler import cite, site_launcher
from hpclaunch.software.containers import facts_of, is_guessed
from hpclaunch.software.script_lines import WIDTH, line, literal

FOUND = "found: "
"""How the origin of a framework begins that the program itself shows."""


def check_framework(request: JobRequest) -> None:
    """Refuse settings that the named framework does not have; raises BadInputError."""
    if request.zero_stage is not None:
        if request.framework != "deepspeed":
            raise BadInputError.case("zero-stage: other framework", zero_stage=request.zero_stage)
        if request.zero_stage not in range(4):
            raise BadInputError(f"--zero-stage {request.zero_stage}: the stages of ZeRO are 0 to 3")
    if request.timeline and not framework_of(request).timeline and not request.command.bundled:
        raise BadInputError.case("timeline: other framework", request=request)


def framework_lines(job: JobLayout) -> tuple[Line, ...]:
    """Return the shell lines before the launch."""
    request, framework, started = job.request, job.framework, job.started
    lines: list[Line] = []
    if framework.rendezvous or started:
        lines += _rendezvous(job)
    lines += (Line(text=text, reason=reason) for text, reason in framework.lines)
    if framework.coordinator:
        lines.append(line("jax coordinator"))
    lines += _horovod(request, job.profile)
    if framework.hostfile or (started and started.launcher is DEEPSPEED):
        # sed reads to the end, unlike head: with pipefail a list cut short would end the job.
        facts = {"names": job.scheduler.node_names, "nodes": job.nodes, "ranks": job.tasks_per_node}
        lines += [line("hostfile nodes", **facts), line("hostfile")]
    if request.zero_stage is not None:
        lines += _zero_lines(request, interpreter(request, job.profile))
    return tuple(lines)


def rank_lines(job: JobLayout, needed: frozenset[str]) -> tuple[Line, ...]:
    """Return the shell lines by which each rank knows who it is.

    ``needed``: RANK and LOCAL_RANK, as far as the rank's shell itself reads them; where the program must
    not, they stay in that shell.
    """
    launcher, per_node = job.launcher, str(job.tasks_per_node)
    names = [name for name in job.framework.rank_variables if name != "LOCAL_RANK" or job.local_rank_fits]
    found = {"RANK": launcher.rank, "LOCAL_RANK": launcher.local_rank}
    who = {name: numbered(launcher.name, value) for name, value in found.items()}
    values = {
        **who,
        "WORLD_SIZE": str(job.tasks),
        "LOCAL_WORLD_SIZE": per_node,
        "LOCAL_SIZE": per_node,
        "GROUP_RANK": f"$((RANK / {per_node}))",
        "JAX_NUM_PROCESSES": str(job.tasks),
        "JAX_PROCESS_ID": '"$RANK"',
    }
    parts = (
        ("", [n for n in who if n in needed and n not in names], "this shell's own"),
        ("export ", [n for n in names if n in who], "the rank"),
        ("export ", [n for n in names if n not in who], _readers(job.request)),
    )
    lines = []
    for command, some, reason in parts:
        texts = [f"{name}={values[name]}" for name in some]
        if len(" ".join((command, *texts))) < WIDTH:
            texts = [" ".join(texts)]
        lines += [Line(text=command + text, reason=reason) for text in texts if text]
    if job.framework.coordinator and not launcher.known_to_jax:
        # Variables by which JAX finds the ranks of a launcher that it does not know.
        local = line("jax local rank", rank=who["LOCAL_RANK"])
        lines += [line("jax sizes", tasks=job.tasks), local, line("jax finds open mpi")]
    return tuple(lines)


def numbered(launcher: str, number: str) -> str:
    """Return a launcher's expression for a number; its last name ends the shell where it is not set."""
    return re.sub(r"[$]([A-Z]\w*)", rf"${{\1:?{launcher} gave no rank}}", f'"{number}"')


def _readers(request: JobRequest) -> str:
    if request.framework == "jax":
        return "the rank, as JAX programs pass it to jax.distributed.initialize"
    named = {"deepspeed": "DeepSpeed", None: "torch.distributed and others"}
    return f"and the sizes, for {named.get(request.framework, 'torch.distributed')}"


def _rendezvous(job: JobLayout) -> Iterator[Line]:
    """Yield MASTER_ADDR and MASTER_PORT; in an array each job has its own.

    The port lies in 10000-19999, below Linux's ephemeral range (from 32768, ip_local_port_range in man 7 ip),
    and differs from job to job: 10000 + job number modulo 10000.
    """
    arrays, suffix = job.scheduler.arrays, job.profile.fabric.name_suffix
    yield Line(text=job.scheduler.first_node, reason="rendezvous: the job's first node")
    if suffix:
        yield line("fast network", suffix=shlex.quote(suffix))
    number = arrays.port_number if job.request.array and arrays else job.scheduler.port_number
    yield line("rendezvous port", number=number)


def _horovod(request: JobRequest, profile: SiteProfile) -> Iterator[Line]:
    """Yield Horovod's lines: ranks that a launcher starts have no Gloo rendezvous, a server of horovodrun.

    A bare name of a timeline is a file in the job's folder, so that no two jobs write the same one.
    """
    file = request.timeline or ""
    path = literal(file)
    if request.framework == "horovod":
        yield line("horovod controller")
        if profile.node is None or profile.node.gpu_vendor != "intel":  # where oneCCL may carry the data
            yield line("horovod cpu operations")
        if "/" not in file:
            path = f'"$HPCLAUNCH_JOB_FOLDER"/{path}'
    if file:
        yield line("horovod timeline", path=path)
        yield line("horovod cycles")


def interpreter(request: JobRequest, profile: SiteProfile) -> str:
    """Return the Python of a job: the one named, the one that the command starts with, else the site's."""
    argv = () if request.command.bundled else inner_words(request.command.argv)
    first = argv[0] if argv else ""
    own = first if re.fullmatch(r"python[\d.]*", PurePath(first).name) else None
    return request.python or own or profile.software.python


_CONFIG_OPTIONS = ("--deepspeed_config", "--deepspeed-config", "--deepspeed")
"""DeepSpeed's own option, how argparse may spell it, and that of the Hugging Face trainer."""


def deepspeed_config(argv: tuple[str, ...]) -> str | None:
    """Return the file of ``--deepspeed``; None: not given, or the bare switch of DeepSpeed's own programs."""
    named = (file for option, file in option_values(argv) if option in _CONFIG_OPTIONS)
    return next((file for file in named if file.endswith(".json") and not file.startswith("-")), None)


def _zero_lines(request: JobRequest, python: str) -> tuple[Line, ...]:
    """Return the lines that make a configuration with the job's stage, which DeepSpeed reads only there."""
    stage, given, own = request.zero_stage, deepspeed_config(request.command.argv), line("deepspeed config")
    if given is None:
        fragment = json.dumps({"zero_optimization": {"stage": stage}})
        return own, line("zero stage", fragment=literal(fragment))
    words = {"python": literal(python), "config": literal(given)}
    return own, line("zero stage of copy", given=given, stage=stage, **words)


def framework_notes(job: JobLayout) -> Iterator[str]:
    """Yield by what the framework was found and what it needs, or what it means that none was found."""
    request, settings = job.request, job.settings
    if not request.command.bundled:
        yield from _found(job)
        if job.framework.coordinator and isinstance(job.launcher, Mpiexec):
            yield note_text("JAX: Open MPI 5")  # of which JAX asks mpi4py; sources: frameworks.json
        # Profiles know of no Python that has Ray.
        if request.framework == "ray" and not any(each.name.startswith("environment.") for each in settings):
            yield "ray must be in the job's Python: --venv, --conda or --container; --check-imports tries it"
    container = request.environment.container if request.environment else None
    if container and (note := is_guessed(job.profile, container)):
        yield note
    yield from _fabric_notes(job)


def _found(job: JobLayout) -> Iterator[str]:
    mpi = found_in_program(MPI, job.settings)
    if reason := found_in_program("framework", job.settings):
        yield f"framework {job.request.framework} ({reason}); --framework names another"
    if mpi:
        yield f"the program uses MPI, too ({mpi}): the launcher must fit its MPI"
    if not (reason or mpi or job.request.framework) and job.gpus:
        yield sharing_note(job) or (
            "the program shows no framework that is known: each rank sees all GPUs of its node, its own as"
            " number LOCAL_RANK; --framework names one"
        )


def uses_mpi(request: JobRequest, settings: tuple[Setting, ...]) -> bool:
    """Whether the ranks of a program use the MPI of their Python, so that the launcher must fit it."""
    by_mpi = request.command.bundled or framework_of(request).by_mpi
    return by_mpi or found_in_program(MPI, settings) is not None


def with_launcher(
    request: JobRequest, profile: SiteProfile, tasks: int, settings: tuple[Setting, ...]
) -> SiteProfile:
    """Return the profile with the launcher of this job: another one where its ranks do without MPI.

    They do where their framework is known to, and a rank that is alone does. Raises BadInputError where
    ranks find each other by MPI and the site's launcher is for others.
    """
    launcher, by_mpi = site_launcher(profile), uses_mpi(request, settings)
    if by_mpi and tasks > 1 and not launcher.starts_mpi:
        raise BadInputError.case("launcher: without MPI", site=profile.name, launcher=launcher.name)
    known = request.framework is not None and framework_of(request).rendezvous
    if launcher.without_mpi is None or by_mpi or not (known or tasks == 1):
        return profile
    return replace(profile, scheduler=replace(profile.scheduler, launcher=launcher.without_mpi))


def found_in_program(name: str, settings: tuple[Setting, ...]) -> str | None:
    """Return by what a setting is known: ``framework``, or ``mpi4py`` with another one; None: by nothing."""
    origins = (setting.origin for setting in settings if setting.name == name)
    return next((text.removeprefix(FOUND) for text in origins if text.startswith(FOUND)), None)


def about_framework(plan: LaunchPlan) -> list[str]:
    """Return the line about the framework in the comment at the head of a script."""
    if plan.request.command.bundled:
        return []
    if plan.request.framework is None:
        return ["Framework: not known; --framework names it."]
    reason = found_in_program("framework", plan.settings) or "named in the request"
    mpi = found_in_program(MPI, plan.settings)
    also = [f"It uses MPI, too: {mpi}."] if mpi else []
    return [f"Framework: {plan.request.framework}; {reason}.", *also]


def _fabric_notes(job: JobLayout) -> Iterator[str]:
    """Yield the note that nothing loads the plugin by which NCCL or RCCL uses the site's network.

    Without it the libraries send by TCP between nodes and say so only in their own debug output. Where the
    site's variables demand the plugin, the job ends as it starts.
    """
    request, profile, plugin = job.request, job.profile, job.profile.fabric.plugin
    environment = request.environment or Environment()
    if plugin is None or job.nodes < 2 or not job.framework.nccl or not job.gpus:
        return
    there, page = _is_there(plugin, request, environment, profile), cite(profile, plugin.source)
    source = profile.sources.get(plugin.source or "")
    doubted = source is not None and source.evidence == "conflicting" and not environment.container
    if there and not doubted:
        return
    where = "the image must hold it" if environment.container else f"{plugin.install} brings it, {page}"
    demanded = profile.fabric.multi_node.get("NCCL_NET")
    without = "messages between nodes go by TCP"
    if demanded and demanded.value and not (environment.container and demanded.outside_containers):
        without = f"NCCL_NET={demanded.value} ends the job"
    checked = "" if request.preflight else "; --preflight looks for it before the ranks start"
    if there:
        yield note_text("fabric: disputed plugin", plugin=plugin, page=page, without=without, checked=checked)
    else:
        lacking = f"NCCL's and RCCL's plugin {plugin.name} is not loaded"
        yield f"{lacking}, without which {without} ({where}){checked}"


def _is_there(
    plugin: FabricPlugin, request: JobRequest, environment: Environment, profile: SiteProfile
) -> bool:
    """Whether a module, an option of the job or the container engine brings the plugin."""
    from hpclaunch.software.contradictions import loaded  # most jobs need none of it

    if container := environment.container:
        site = facts_of(profile, container)
        in_image = site and site.fabric_in_images and container.image.startswith(site.images)
        if plugin.in_containers or in_image:
            return True
    if plugin.directive and any(text.startswith(plugin.directive) for text in request.directives):
        return True
    return any(f"/{plugin.name}" in f"/{name}" for name in loaded(environment, profile))
