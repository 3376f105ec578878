"""Verdicts on a framework without Horovod: torch, JAX, DeepSpeed, TensorFlow or mpi4py. Pure."""

from collections.abc import Iterator
from typing import Any

from hpclaunch.check.check_report import Check, Status
from hpclaunch.check.facts import BuildFacts, Outcome
from hpclaunch.check.judge_build import judge_versions
from hpclaunch.check.remedies import Remedies
from hpclaunch.framework_table import FRAMEWORKS
from hpclaunch.site.schema import SiteProfile

GPU_BUILDS = {"nvidia": "cuda", "amd": "rocm", "intel": "xpu"}
"""Vendor of the site's GPUs -> the check that a framework is built for them."""
PLANNED = tuple(name for name, row in FRAMEWORKS.items() if name in row.goals)
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
    return (imports, *_gpu_build(_stated(outcome), module, remedies), *versions)


def judge_imports(outcome: Outcome, module: str, python: str, remedies: Remedies) -> Check:
    """Judge whether the interpreter can import what the framework's program imports."""
    answers, name = outcome.answers(), "imports"
    remedy = (
        f"install {module} for {python}, or name the software that has it under environment: or with --python"
        f"{_ways(module, remedies)}"
    )
    if not answers:
        evidence = f"import {module} by {python} {outcome.ending()}: {outcome.last_error_line()}"
        status: Status = "unknown" if outcome.timed_out else "missing"
        return Check(name=name, status=status, evidence=evidence, remedy=remedy)
    if not answers.get("there"):
        return Check(name=name, status="missing", evidence=f"{python} has no {module}", remedy=remedy)
    wrong: dict[str, str] = answers.get("wrong") or {}
    if wrong or not answers.get("imported"):
        errors = "; ".join(f"{each}: {error}" for each, error in wrong.items())
        evidence = f"{python}: {errors or 'no framework for it is installed'}"
        return Check(name=name, status="missing", evidence=evidence, remedy=remedy)
    version = f" {_stated(outcome).get('framework') or ''}".rstrip()
    evidence = f"{python} imports {', '.join(answers['imported'])}{version}"
    return Check(name=name, status="have", evidence=evidence)


def _ways(module: str, remedies: Remedies) -> str:
    if module not in PLANNED or remedies.profile is None:
        return ""
    return f"; all ways: hpclaunch software plan --site {remedies.profile.name} --for {module}"


def _stated(outcome: Outcome) -> dict[str, Any]:
    versions = outcome.answers().get("versions")
    return versions if isinstance(versions, dict) else {}


def _gpu_build(stated: dict[str, Any], module: str, remedies: Remedies) -> Iterator[Check]:
    """Judge whether the framework is built for GPUs of the site's vendor."""
    name = gpu_build_of(remedies.profile)
    if name is None or remedies.profile is None or module == "mpi4py":
        return
    program = f"{module} {stated.get('framework') or ''}".strip()
    if stated.get(name):
        yield Check(name=name, status="have", evidence=f"{program} is built for {name} {stated[name]}")
        return
    if not stated:
        yield Check(name=name, status="unknown", evidence=f"{program} does not tell what it is built for")
        return
    built = [f"{each} {stated[each]}" for each in GPU_BUILDS.values() if stated.get(each)]
    kinds = ", ".join(built) or "CPUs only"
    evidence = f"{program} is built for {kinds}; {remedies.profile.name} needs {name}"
    remedy = f"install the build for {name}{_ways(module, remedies)}"
    yield Check(name=name, status="missing", evidence=evidence, remedy=remedy)
