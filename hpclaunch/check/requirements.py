"""What a Horovod build must have: from ``--require``, or from the site's profile."""

from difflib import get_close_matches

from hpclaunch.check.check_report import Requirement
from hpclaunch.check.judge_framework import gpu_build_of
from hpclaunch.errors import BadInputError
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler

FRAMEWORKS = ("tensorflow", "keras", "pytorch", "mxnet")
OPERATIONS = ("mpi", "gloo", "nccl", "ddl", "ccl", "cuda", "rocm")
LAUNCH_LAYER = (
    "environment", "python", "imports", "versions", "gpu-arch", "mpi-threads", "mpi-plugin", "pmix",
    "mpi-library", "mpi-launch", "horovod-launch", "gpus", "fabric-plugin", "space", "inodes", "clock",
    "stripes", "allreduce", "nodes",
)  # fmt: skip
KNOWN = ("horovod", *FRAMEWORKS, *OPERATIONS, "xpu", *(name for name in LAUNCH_LAYER if name != "python"))
"""The names that ``--require`` takes."""
# Horovod calls RCCL's operations NCCL too: both have the same build flag, box and function.
ALIASES = {"torch": "pytorch", "tf": "tensorflow", "rccl": "nccl"}


def parse_require(texts: tuple[str, ...]) -> tuple[Requirement, ...]:
    """Read ``--require mpi,nccl,tensorflow`` and ``--require 'mpi|gloo'`` (one of them).

    Raises BadInputError for a name that is not a check.
    """
    words = [word.strip().lower() for text in texts for word in text.split(",")]
    return tuple(
        Requirement(names=tuple(_known(name.strip()) for name in word.split("|")), reason="--require")
        for word in words
        if word
    )


def _known(name: str) -> str:
    name = ALIASES.get(name, name)
    if name in KNOWN:
        return name
    close = get_close_matches(name, [*KNOWN, *ALIASES], n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise BadInputError(f"--require {name!r}: there is no such check", f"{hint}known: {', '.join(KNOWN)}")


def site_requirements(profile: SiteProfile) -> tuple[Requirement, ...]:
    """Return what a job across GPUs of this site needs of its Horovod build.

    The vendor decides between CUDA and ROCm, the MPI the launcher starts is the controller, and NCCL (RCCL on
    AMD) carries the gradients (Horovod docs, "Horovod on GPU"). A site without GPUs needs a controller only.
    """
    node, reason = profile.node, f"site {profile.name}"
    names: list[tuple[str, ...]] = []
    if site_scheduler(profile).starts_at_once or node is None:
        names.append(("mpi", "gloo"))
    else:
        names.append(("mpi",))
    if node is not None and node.gpus:
        names += {"amd": [("rocm",), ("nccl",)], "nvidia": [("cuda",), ("nccl",)]}.get(
            node.gpu_vendor or "", [("ccl",)] if node.gpu_vendor == "intel" else []
        )
        if node.gpu_arch:
            names.append(("gpu-arch",))
    return tuple(Requirement(names=each, reason=reason) for each in names)


def framework_requirements(profile: SiteProfile | None, module: str) -> tuple[Requirement, ...]:
    """Return what a framework without Horovod must have: it imports, and it is built for the site's GPUs."""
    needs = [Requirement(names=("imports",), reason=f"--framework {module}")]
    build = gpu_build_of(profile)
    if profile is not None and build and module != "mpi4py":
        needs.append(Requirement(names=(build,), reason=f"site {profile.name}"))
    return tuple(needs)


def default_requirements(*, frameworks: bool) -> tuple[Requirement, ...]:
    """Return what every Horovod build must have by default: a controller, and a framework.

    ``frameworks``: False if only text is judged, which cannot show that a framework works.
    """
    needs = [Requirement(names=("mpi", "gloo"), reason="a controller that connects the ranks")]
    if frameworks:
        needs.append(Requirement(names=FRAMEWORKS, reason="a framework to train with"))
    return tuple(needs)
