"""What each framework needs of a job's script, as a table: its variables, its GPUs, its files. Pure.

``--framework`` sets what is in its row and nothing else. Sources:

- torch: the variables that ``init_process_group`` reads (pytorch.org/docs/stable/distributed.html,
  "Environment variable initialization") and LOCAL_WORLD_SIZE (pytorch.org/docs/stable/elastic/run.html).
- deepspeed: the five variables without which ``init_distributed`` looks for MPI (deepspeed/comm/comm.py), and
  LOCAL_SIZE, which its own launcher sets (deepspeed/launcher/launch.py); its hostfile is ``HOST slots=N``
  (deepspeed.ai/getting-started, "Resource Configuration").
- horovod: HOROVOD_CONTROLLER and HOROVOD_CPU_OPERATIONS (horovod/common/utils/env_parser.cc, 0.28.1).
- GPUs: their programs take the device whose number is the local rank ("Pin each GPU to a single process" in
  Horovod's README; ``cuda:LOCAL_RANK`` in torch's and DeepSpeed's tutorials), so each rank must see them all.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import PurePath

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler


class Framework(msgspec.Struct, frozen=True, kw_only=True):
    """What the ranks of one framework need."""

    rank_variables: tuple[str, ...] = ()
    """Environment variables from which a rank's program reads its rank."""
    rendezvous: bool = False
    """MASTER_ADDR and MASTER_PORT."""
    by_mpi: bool = False
    """The ranks find each other by MPI, so srun's plugin must fit the MPI of their Python."""
    timeline: bool = False
    """It writes HOROVOD_TIMELINE."""
    hostfile: bool = False
    """``HOST slots=N`` for each node, in the job's folder."""
    all_gpus: bool = False
    """Each rank sees all GPUs of its node, its own at the number of its local rank; else its own alone."""
    nccl: bool = False
    """On GPUs its tensors go by NCCL or RCCL, which want the fabric's plugin."""
    module: str | None = None
    """What a Python must be able to import."""


_TORCH = ("RANK", "LOCAL_RANK", "WORLD_SIZE")

UNNAMED = Framework(rank_variables=_TORCH, rendezvous=True, timeline=True)
"""None was named: the bundled runner, or a program of which nothing is known."""

FRAMEWORKS = {
    "horovod": Framework(by_mpi=True, timeline=True, all_gpus=True, nccl=True, module="horovod"),
    "torch": Framework(
        rank_variables=(*_TORCH, "LOCAL_WORLD_SIZE"),
        rendezvous=True,
        all_gpus=True,
        nccl=True,
        module="torch",
    ),
    "deepspeed": Framework(
        rank_variables=(*_TORCH, "LOCAL_WORLD_SIZE", "LOCAL_SIZE"),
        rendezvous=True,
        all_gpus=True,
        nccl=True,
        hostfile=True,
        module="deepspeed",
    ),
    "mpi4py": Framework(by_mpi=True, module="mpi4py"),
    "none": Framework(),
}

_CONFIG_OPTIONS = ("--deepspeed_config", "--deepspeed-config", "--deepspeed")
"""DeepSpeed's own option, how argparse may spell it, and that of the Hugging Face trainer."""


def framework_of(request: JobRequest) -> Framework:
    """Return the row of the request's framework."""
    return FRAMEWORKS[request.framework] if request.framework else UNNAMED


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


def framework_lines(
    request: JobRequest, profile: SiteProfile, nodes: int, tasks_per_node: int
) -> tuple[Line, ...]:
    """Return the shell lines before the launch."""
    framework, scheduler = framework_of(request), site_scheduler(profile)
    lines: list[Line] = []
    if framework.rendezvous:
        lines += rendezvous(scheduler, array=bool(request.array))
    if request.framework == "horovod":
        lines += _horovod(profile)
    if request.timeline:
        lines += _timeline(request)
    if framework.hostfile:
        lines += _hostfile(scheduler, nodes, tasks_per_node)
    if request.zero_stage is not None:
        lines += _zero(request, profile)
    return tuple(lines)


def rank_lines(
    request: JobRequest, profile: SiteProfile, nodes: int, tasks_per_node: int, needed: frozenset[str]
) -> tuple[Line, ...]:
    """Return the shell lines by which each rank knows who it is.

    ``needed``: RANK and LOCAL_RANK, as far as the rank's shell itself reads them; where the framework does
    not, they stay in that shell.
    """
    names = framework_of(request).rank_variables
    launcher = site_launcher(profile)
    who = {"RANK": launcher.rank, "LOCAL_RANK": launcher.local_rank}
    values = {
        **{name: f'"{value}"' for name, value in who.items()},
        "WORLD_SIZE": str(nodes * tasks_per_node),
        "LOCAL_WORLD_SIZE": str(tasks_per_node),
        "LOCAL_SIZE": str(tasks_per_node),
    }
    lines = []
    if own := [name for name in who if name in needed and name not in names]:
        text = " ".join(f"{name}={values[name]}" for name in own)
        lines.append(Line(text=text, reason="rank and local rank, for this shell only"))
    if names:
        text = "export " + " ".join(f"{name}={values[name]}" for name in names)
        reader = "DeepSpeed" if request.framework == "deepspeed" else "torch.distributed"
        others = "" if request.framework else " and others"
        reason = f"the rank, as the variables that {reader}{others} {'read' if others else 'reads'}"
        lines.append(Line(text=text, reason=reason))
    if request.zero_stage is not None and (config := deepspeed_config(request.command.argv)):
        lines.append(_own_config(config))
    return tuple(lines)


def shows_all_gpus(request: JobRequest, gpus: tuple[tuple[int, ...], ...]) -> bool:
    """Whether each rank sees all GPUs of the node, given those of each local rank.

    Only where all ranks have the same number of GPUs and no two share one.
    """
    every = [gpu for each in gpus for gpu in each]
    alike = len({len(each) for each in gpus}) == 1
    return framework_of(request).all_gpus and alike and len(set(every)) == len(every) > 0


def rendezvous(scheduler: Scheduler, array: bool = False) -> tuple[Line, ...]:
    """Return MASTER_ADDR and MASTER_PORT; in an ``array`` each job has its own.

    The port lies in 10000-19999, below Linux's ephemeral range (from 32768, ip_local_port_range in man 7 ip),
    and differs from job to job: 10000 + job number modulo 10000.
    """
    number = scheduler.arrays.port_number if array and scheduler.arrays else scheduler.port_number
    return (
        Line(text=f"{scheduler.first_node}\nexport MASTER_ADDR", reason="rendezvous: the job's first node"),
        Line(
            text=f"export MASTER_PORT=$((10000 + {number} % 10000))",
            reason="rendezvous: a port of this job's own, below the ephemeral range",
        ),
    )


def _horovod(profile: SiteProfile) -> list[Line]:
    """Ranks that a launcher starts have no Gloo rendezvous: that is a server inside of horovodrun."""
    lines = [
        Line(
            text="export HOROVOD_CONTROLLER=mpi",
            reason="the launcher starts the ranks, so they find each other by MPI (Gloo needs horovodrun)",
        )
    ]
    if profile.node is None or profile.node.gpu_vendor != "intel":  # where oneCCL may carry the data
        lines.append(
            Line(
                text="export HOROVOD_CPU_OPERATIONS=mpi",
                reason="and tensors in host memory go by MPI, also where Gloo is the build's default",
            )
        )
    return lines


def _timeline(request: JobRequest) -> list[Line]:
    """A bare name is a file in the job's folder for Horovod, so that no two jobs write the same one."""
    file = request.timeline or ""
    path = shlex.quote(file)
    if request.framework == "horovod" and "/" not in file:
        path = f'"$HPCLAUNCH_JOB_FOLDER"/{path}'
    return [
        Line(
            text=f"export HOROVOD_TIMELINE={path}",
            reason="Horovod's rank 0 writes the timeline of all ranks here (Horovod docs, timeline)",
        ),
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
        Line(
            text='export HPCLAUNCH_HOSTFILE="$HPCLAUNCH_JOB_FOLDER/hostfile"',
            reason="where that file is, for programs that start others",
        ),
    ]


# --- ZeRO --------------------------------------------------------------------------------------------------

_SET_STAGE = (
    "import json, sys; given, stage, own = sys.argv[1:]; config = json.load(open(given)); "
    'config.setdefault("zero_optimization", {})["stage"] = int(stage); '
    'json.dump(config, open(own, "w"), indent=2)'
)


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


def _zero(request: JobRequest, profile: SiteProfile) -> list[Line]:
    """DeepSpeed reads its stage from its JSON configuration only, so the job gets one with that stage."""
    stage, given = request.zero_stage, deepspeed_config(request.command.argv)
    own = Line(
        text='export HPCLAUNCH_DS_CONFIG="$HPCLAUNCH_JOB_FOLDER/ds_config.json"',
        reason="DeepSpeed's configuration of this job",
    )
    if given is None:
        fragment = json.dumps({"zero_optimization": {"stage": stage}})
        text = f"printf '%s\\n' {shlex.quote(fragment)} > \"$HPCLAUNCH_DS_CONFIG\""
        return [own, Line(text=text, reason="the command names none: this one holds the ZeRO stage alone")]
    python = shlex.quote(interpreter(request, profile))
    text = f'{python} -c {shlex.quote(_SET_STAGE)} {shlex.quote(given)} {stage} "$HPCLAUNCH_DS_CONFIG"'
    return [own, Line(text=text, reason=f"a copy of {given}, with ZeRO stage {stage}")]


def _own_config(config: str) -> Line:
    """Replace the file among the program's arguments; quoted words in a pattern stand for themselves."""
    quoted = shlex.quote(config)
    text = (
        f"given={quoted}\n"
        'for word; do shift; case $word in "$given" | --*="$given") '
        'word=${word%"$given"}$HPCLAUNCH_DS_CONFIG ;; esac; set -- "$@" "$word"; done'
    )
    return Line(text=text, reason="the job's own configuration of DeepSpeed instead of the given one")


def interpreter(request: JobRequest, profile: SiteProfile) -> str:
    """Return the Python of a job: the one named, the one that the command starts with, else the site's."""
    first = request.command.argv[0] if request.command.argv and not request.command.bundled else ""
    own = first if re.fullmatch(r"python[\d.]*", PurePath(first).name) else None
    return request.python or own or profile.software.python
