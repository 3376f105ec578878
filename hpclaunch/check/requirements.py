"""The features that a Horovod build must have: from ``--require``, or from the site's profile."""

from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial
from typing import Any

from hpclaunch import framework_table
from hpclaunch.check.check_report import Check, Requirement, verdict
from hpclaunch.check.facts import BuildFacts, Outcome
from hpclaunch.check.judge_build import Remedies, judge_versions, stated_versions
from hpclaunch.errors import BadInputError
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler

GPU_BUILDS = {"nvidia": "cuda", "amd": "rocm", "intel": "xpu"}
"""Vendor of the site's GPUs -> the check that a framework is built for them."""
PLANNED = tuple(name for name, row in framework_table.FRAMEWORKS.items() if name in row.goals)
"""Frameworks that ``hpclaunch software plan --for`` has."""


def gpu_build_of(profile: SiteProfile | None) -> str | None:
    """Return the check that a framework is built for the site's GPUs; None: there are none, or not known."""
    node = profile.node if profile else None
    return GPU_BUILDS.get(node.gpu_vendor or "") if node and node.gpus else None


def judge_framework(outcome: Outcome, module: str, python: str, remedies: Remedies) -> tuple[Check, ...]:
    """Judge whether the interpreter imports a framework, and whether it is built for the site's GPUs."""
    imports = judge_imports(outcome, module, python, remedies)
    if imports.status != "have":
        return (imports,)
    facts = BuildFacts(frameworks={module: outcome})
    versions = judge_versions(facts, remedies) if module != "mpi4py" else ()
    return (imports, *_gpu_build(stated_versions(outcome), module, remedies), *versions)


def judge_imports(outcome: Outcome, module: str, python: str, remedies: Remedies) -> Check:
    """Judge whether the interpreter can import what the framework's program imports."""
    answers = outcome.answers()
    judged = partial(verdict, module=module, python=python, ways=_ways(module, remedies))
    if not answers:
        ending = f"{outcome.ending()}: {outcome.last_error_line()}"
        return judged("imports: no answer", status="unknown" if outcome.timed_out else None, ending=ending)
    if not answers.get("there"):
        return judged("imports: not there")
    wrong: dict[str, str] = answers.get("wrong") or {}
    if wrong or not answers.get("imported"):
        errors = "; ".join(f"{each}: {error}" for each, error in wrong.items())
        return judged("imports: wrong", errors=errors or "no framework for it is installed")
    version = f" {stated_versions(outcome).get('framework') or ''}".rstrip()
    return judged("imports: right", modules=", ".join(answers["imported"]), version=version)


def _ways(module: str, remedies: Remedies) -> str:
    if module not in PLANNED or remedies.profile is None:
        return ""
    return f"; all ways: hpclaunch software plan --site {remedies.profile.name} --for {module}"


def _gpu_build(stated: dict[str, Any], module: str, remedies: Remedies) -> Iterator[Check]:
    name = gpu_build_of(remedies.profile)
    if name is None or remedies.profile is None or module == "mpi4py":
        return
    built = [f"{each} {stated[each]}" for each in GPU_BUILDS.values() if stated.get(each)]
    yield verdict(
        f"gpu build: {'right' if stated.get(name) else 'wrong' if stated else 'not stated'}",
        name,
        program=f"{module} {stated.get('framework') or ''}".strip(),
        version=stated.get(name),
        kinds=", ".join(built) or "CPUs only",
        site=remedies.profile.name,
        ways=_ways(module, remedies),
    )


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
    """Read ``--require mpi,nccl`` and ``--require 'mpi|gloo'`` (one of them). Raises BadInputError."""
    words = [word.strip().lower() for text in texts for word in text.split(",")]
    if texts and not any(words):
        raise BadInputError("--require is empty", f"known: {', '.join(KNOWN)}")
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


def default_requirements(*, frameworks: bool) -> tuple[Requirement, ...]:
    """Return what every Horovod needs: a controller, a framework; ``frameworks`` False: text is judged."""
    needs = [Requirement(names=("mpi", "gloo"), reason="a controller that connects the ranks")]
    if frameworks:
        needs.append(Requirement(names=FRAMEWORKS, reason="a framework to train with"))
    return tuple(needs)
