"""The needs of each framework in a job's script, by its row in ``frameworks.json``: variables, GPUs, files.

``--framework`` sets what is in its row and nothing else; the row names its sources. GPUs: `layout.py`.
"""

import json
import re
import shlex
from pathlib import PurePath

from hpclaunch.errors import BadInputError
from hpclaunch.framework_table import FRAMEWORKS, Framework
from hpclaunch.plan.layout import JobLayout, local_rank_fits, rank_gpus
from hpclaunch.plan.request import JobRequest
from hpclaunch.plan.script_layout import WIDTH
from hpclaunch.plan.worker_launchers import DEEPSPEED, worker_launch
from hpclaunch.plan.wrappers import inner_words
from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.launcher import Launcher
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.software.script_lines import line
from hpclaunch.software.shell_quoting import literal

_TORCH = ("RANK", "LOCAL_RANK", "WORLD_SIZE")

BUNDLED = Framework(rank_variables=_TORCH, rendezvous=True, timeline=True)
"""The bundled runner: it takes the GPU of its local rank modulo those that it sees."""

UNKNOWN = Framework(rank_variables=_TORCH, rendezvous=True, timeline=True, device_by_local_rank=True)
"""None was named, and the program does not show one."""


def framework_of(request: JobRequest) -> Framework:
    """Return the row of the request's framework."""
    if request.framework:
        return FRAMEWORKS[request.framework]
    return BUNDLED if request.command.bundled else UNKNOWN


def check_framework(request: JobRequest) -> None:
    """Refuse settings that the named framework does not have; raises BadInputError."""
    if request.zero_stage is not None:
        if request.framework != "deepspeed":
            raise BadInputError(
                f"--zero-stage {request.zero_stage}: ZeRO is DeepSpeed's", "add --framework deepspeed"
            )
        if request.zero_stage not in range(4):
            raise BadInputError(f"--zero-stage {request.zero_stage}: the stages of ZeRO are 0 to 3")
    if request.timeline and not framework_of(request).timeline and not request.command.bundled:
        raise BadInputError(
            f"--timeline {request.timeline}: {request.framework} writes no Horovod timeline",
            "leave --timeline out, or use --framework horovod",
        )


def _own_lines(framework: Framework) -> list[Line]:
    return [Line(text=text, reason=reason) for text, reason in framework.lines]


def framework_lines(
    request: JobRequest, profile: SiteProfile, nodes: int, tasks_per_node: int
) -> tuple[Line, ...]:
    """Return the shell lines before the launch."""
    framework, scheduler = framework_of(request), site_scheduler(profile)
    started = worker_launch(request)
    lines: list[Line] = []
    if framework.rendezvous or started:
        lines += rendezvous(scheduler, profile.fabric.name_suffix, array=bool(request.array))
    lines += _own_lines(framework)
    if framework.coordinator:
        lines.append(line("jax coordinator"))
    if request.framework == "horovod":
        lines += _horovod(profile)
    if request.timeline:
        lines += _timeline(request)
    if framework.hostfile or (started and started.launcher is DEEPSPEED):
        lines += _hostfile(scheduler, nodes, tasks_per_node)
    if request.zero_stage is not None:
        lines += zero_lines(request, interpreter(request, profile))
    return tuple(lines)


def rank_lines(
    request: JobRequest,
    profile: SiteProfile,
    layout: JobLayout,
    needed: frozenset[str],
) -> tuple[Line, ...]:
    """Return the shell lines by which each rank knows who it is.

    ``needed``: RANK and LOCAL_RANK, as far as the rank's shell itself reads them; where the program must
    not, they stay in that shell.
    """
    launcher, tasks_per_node = site_launcher(profile), layout.tasks_per_node
    gpus = rank_gpus(layout)
    names = [
        name
        for name in framework_of(request).rank_variables
        if name != "LOCAL_RANK" or local_rank_fits(framework_of(request).device_by_local_rank, gpus)
    ]
    found = {"RANK": launcher.rank, "LOCAL_RANK": launcher.local_rank}
    who = {name: numbered(launcher.name, value) for name, value in found.items()}
    values = {
        **who,
        "WORLD_SIZE": str(layout.tasks),
        "LOCAL_WORLD_SIZE": str(tasks_per_node),
        "LOCAL_SIZE": str(tasks_per_node),
        "GROUP_RANK": f"$((RANK / {tasks_per_node}))",
        "JAX_NUM_PROCESSES": str(layout.tasks),
        "JAX_PROCESS_ID": '"$RANK"',
    }
    parts = (
        ("", [n for n in who if n in needed and n not in names], "this shell's own"),
        ("export ", [n for n in names if n in who], "the rank"),
        ("export ", [n for n in names if n not in who], _readers(request)),
    )
    lines = []
    for command, some, reason in parts:
        texts = [f"{name}={values[name]}" for name in some]
        if len(" ".join((command, *texts))) < WIDTH:
            texts = [" ".join(texts)]
        lines += [Line(text=command + text, reason=reason) for text in texts if text]
    lines += _known_to_jax(request, launcher, layout.tasks, who["LOCAL_RANK"])
    return tuple(lines)


def _known_to_jax(request: JobRequest, launcher: Launcher, tasks: int, local_rank: str) -> tuple[Line, ...]:
    """Return the variables by which JAX finds the ranks of a launcher that it does not know."""
    if launcher.known_to_jax or not framework_of(request).coordinator:
        return ()
    return (
        line("jax sizes", tasks=tasks),
        Line(text=f"export OMPI_COMM_WORLD_LOCAL_RANK={local_rank}", reason="the same"),
        line("jax finds open mpi"),
    )


def numbered(launcher: str, number: str) -> str:
    """Return a launcher's expression for a number; its last name ends the shell where it is not set."""
    return re.sub(r"[$]([A-Z]\w*)", rf"${{\1:?{launcher} gave no rank}}", f'"{number}"')


def _readers(request: JobRequest) -> str:
    if request.framework == "jax":
        return "the rank, as JAX programs pass it to jax.distributed.initialize"
    named = {"deepspeed": "DeepSpeed", None: "torch.distributed and others"}
    return f"and the sizes, for {named.get(request.framework, 'torch.distributed')}"


def rendezvous(scheduler: Scheduler, suffix: str | None, array: bool = False) -> tuple[Line, ...]:
    """Return MASTER_ADDR and MASTER_PORT; in an ``array`` each has its own. ``suffix``: fabric.name_suffix.

    The port lies in 10000-19999, below Linux's ephemeral range (from 32768, ip_local_port_range in man 7 ip),
    and differs from job to job: 10000 + job number modulo 10000.
    """
    number = scheduler.arrays.port_number if array and scheduler.arrays else scheduler.port_number
    return (
        Line(text=scheduler.first_node, reason="rendezvous: the job's first node"),
        *(
            [Line(text=f"MASTER_ADDR+={shlex.quote(suffix)}", reason="its name on the fast network")]
            if suffix
            else []
        ),
        line("rendezvous port", number=number),
    )


def _horovod(profile: SiteProfile) -> list[Line]:
    """Ranks that a launcher starts have no Gloo rendezvous: that is a server inside of horovodrun."""
    lines = [line("horovod controller")]
    if profile.node is None or profile.node.gpu_vendor != "intel":  # where oneCCL may carry the data
        lines.append(line("horovod cpu operations"))
    return lines


def _timeline(request: JobRequest) -> list[Line]:
    """A bare name is a file in the job's folder for Horovod, so that no two jobs write the same one."""
    file = request.timeline or ""
    path = literal(file)
    if request.framework == "horovod" and "/" not in file:
        path = f'"$HPCLAUNCH_JOB_FOLDER"/{path}'
    return [
        line("horovod timeline", path=path),
        Line(text="export HOROVOD_TIMELINE_MARK_CYCLES=1", reason="with Horovod's cycles marked in it"),
    ]


def _hostfile(scheduler: Scheduler, nodes: int, tasks_per_node: int) -> list[Line]:
    # sed reads to the end, unlike head: with pipefail a list cut short would end the job.
    text = (
        f"{scheduler.node_names} | sed -n '1,{nodes}s/$/ slots={tasks_per_node}/p'"
        ' > "$HPCLAUNCH_JOB_FOLDER/hostfile"'
    )
    return [
        Line(text=text, reason="the nodes and how many ranks each has, as DeepSpeed's launcher reads them"),
        line("hostfile"),
    ]


def interpreter(request: JobRequest, profile: SiteProfile) -> str:
    """Return the Python of a job: the one named, the one that the command starts with, else the site's."""
    argv = () if request.command.bundled else inner_words(request.command.argv)
    first = argv[0] if argv else ""
    own = first if re.fullmatch(r"python[\d.]*", PurePath(first).name) else None
    return request.python or own or profile.software.python


_CONFIG_OPTIONS = ("--deepspeed_config", "--deepspeed-config", "--deepspeed")
"""DeepSpeed's own option, how argparse may spell it, and that of the Hugging Face trainer."""

_SET_STAGE = """'import json, sys; config = json.load(open(sys.argv[1]))
config.setdefault("zero_optimization", {})["stage"] = int(sys.argv[2])
json.dump(config, open(sys.argv[3], "w"), indent=2)'"""


def deepspeed_config(argv: tuple[str, ...]) -> str | None:
    """Return the configuration that a command names for DeepSpeed; None: it names none.

    ``--deepspeed`` is a switch in DeepSpeed's own programs and takes a file in others.
    """
    for word, following in zip(argv, (*argv[1:], ""), strict=True):
        option, equals, value = word.partition("=")
        file = value if equals else following
        if option in _CONFIG_OPTIONS and file.endswith(".json") and not file.startswith("-"):
            return file
    return None


def zero_lines(request: JobRequest, python: str) -> list[Line]:
    """Return the lines that make the job's configuration; ``python``: the interpreter of the job.

    DeepSpeed reads its stage from its JSON configuration only, so the job gets one with that stage.
    """
    stage, given = request.zero_stage, deepspeed_config(request.command.argv)
    own = line("deepspeed config")
    if given is None:
        fragment = json.dumps({"zero_optimization": {"stage": stage}})
        text = f"printf '%s\\n' {literal(fragment)} > \"$HPCLAUNCH_DS_CONFIG\""
        return [own, Line(text=text, reason="the command names none: this one holds the ZeRO stage alone")]
    text = f'{literal(python)} -c {_SET_STAGE} {literal(given)} {stage} "$HPCLAUNCH_DS_CONFIG"'
    return [own, Line(text=text, reason=f"a copy of {given}, with ZeRO stage {stage}")]


def own_config(config: str) -> Line:
    """Return the line that replaces the file among the program's arguments.

    Quoted words in a pattern of ``case`` stand for themselves.
    """
    quoted = literal(config)
    text = (
        f"given={quoted}\n"
        'for word; do case $word in "$given" | --*="$given") '
        'word=${word%"$given"}$HPCLAUNCH_DS_CONFIG ;; esac\n  shift && set -- "$@" "$word"; done'
    )
    return Line(text=text, reason="the job's own configuration of DeepSpeed instead of the given one")
