"""Verdicts on a Horovod build, from what was gathered: pure, text in and verdicts out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hpclaunch.check import check_build
from hpclaunch.check.check_report import Check, Status
from hpclaunch.check.facts import NOT_FOUND, BuildFacts, Outcome
from hpclaunch.check.known_pairs import bad_pairs
from hpclaunch.check.mpi_families import family, linked_mpi
from hpclaunch.check.remedies import Remedies
from hpclaunch.software.gpu_arch import cuda_addresses, first_cuda

_BOX_FRAMEWORKS = ("tensorflow", "pytorch", "mxnet")
_BOX_OPERATIONS = ("mpi", "gloo", "nccl", "ddl", "ccl")
_OPERATIONS = (*_BOX_OPERATIONS, "cuda", "rocm")
_MODULE = {"tensorflow": "tensorflow", "keras": "tensorflow", "pytorch": "torch", "mxnet": "mxnet"}
# Undefined symbols that only another MPI than the one linked against can cause.
_WRONG_MPI = ("ompi_", "opal_", "MPIR_", "libmpi", "mca_", "PMPI_", "MPI_")


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """Horovod's boxes, and where they were read."""

    boxes: check_build.Boxes
    origin: str


# --- from the text alone -----------------------------------------------------------------------------------


def judge_text(text: Text, remedies: Remedies) -> tuple[Check, ...]:
    """Judge what ``--check-build`` printed and nothing else.

    Controllers and operations are what the boxes say. A framework is never ``have``: its box is filled also
    where nothing native was compiled, or where the framework is not even installed.
    """
    names = (*_BOX_OPERATIONS, *_BOX_FRAMEWORKS)
    return tuple(_from_box(name, text, remedies) for name in names)


def _from_box(name: str, text: Text, remedies: Remedies) -> Check:
    boxes = text.boxes
    said = f"{text.origin}: Horovod {boxes.version or 'of unknown version'} says {boxes.line(name)}"
    sections = (boxes.frameworks, boxes.controllers, boxes.operations)
    marks = [section[name] for section in sections if name in section]
    if not marks:
        why = (
            "there is no box of this name" if boxes else "there are no boxes (the output may have been lost)"
        )
        return Check(
            name=name, status="unknown", evidence=f"{text.origin}: {why}", remedy=remedies.ask_again()
        )
    if not all(marks):
        return Check(name=name, status="missing", evidence=said, remedy=remedies.rebuild(name))
    if name in _BOX_FRAMEWORKS:
        more = "; this box is filled also where no native library was built, or the framework is absent"
        return Check(name=name, status="unknown", evidence=said + more, remedy=remedies.ask_the_library(name))
    return Check(name=name, status="have", evidence=said)


# --- from a live build -------------------------------------------------------------------------------------


def judge_build(facts: BuildFacts, remedies: Remedies, mpi_runtime: str | None = None) -> tuple[Check, ...]:
    """Judge a build that was asked itself: library files, imports, functions, and the boxes beside them.

    ``mpi_runtime``: version of the Open MPI that ranks have at run time; None: not known, or another MPI.
    """
    installed = facts.installed or Outcome(exit_code=NOT_FOUND)
    found = installed.answers()
    if not found.get("folder"):
        return tuple(_not_installed(installed, found, remedies))
    frameworks = tuple(_framework(name, facts, found, remedies) for name in _MODULE)
    boxes = check_build.parse(facts.check_build.stdout) if facts.check_build else None
    operations = tuple(_operation(name, facts, found, boxes, remedies) for name in _OPERATIONS)
    return (
        *operations,
        *frameworks,
        *_enabled(facts, remedies),
        *judge_versions(facts, remedies, mpi_runtime),
    )


def _not_installed(installed: Outcome, found: Mapping[str, Any], remedies: Remedies) -> Iterator[Check]:
    status: Status = "missing"
    if found:
        evidence = f"Horovod is not installed in {found['python']} (Python {found['python_version']})"
    else:
        status = "unknown"
        evidence = f"the interpreter {installed.ending()}: {installed.last_words()}"
    for name in (*_OPERATIONS, *_MODULE):
        yield Check(name=name, status=status, evidence=evidence, remedy=remedies.rebuild(name))


def _framework(name: str, facts: BuildFacts, found: Mapping[str, Any], remedies: Remedies) -> Check:
    """A framework is there when its library file exists, its import works, and ``init`` is in it."""
    version = f"Horovod {found.get('version') or 'of unknown version'}"
    library = found["libraries"].get(name)
    if library is None:
        module = _MODULE[name]
        there = "is installed" if module in found["modules"] else "is not installed either"
        evidence = f"{version} has no compiled library for it in {found['folder']}; {module} {there}"
        return Check(name=name, status="missing", evidence=evidence, remedy=remedies.rebuild(name))
    outcome = facts.frameworks.get(name)
    if outcome is None:
        evidence = f"{library} is there, but {_MODULE[name]} is not installed in {found['python']}"
        return Check(name=name, status="missing", evidence=evidence, remedy=remedies.install(_MODULE[name]))
    answer = outcome.answers()
    if answer.get("imported") and answer.get("init"):
        versions = answer["versions"] if isinstance(answer.get("versions"), dict) else {}
        with_it = f"{_MODULE[name]} {versions.get('framework', 'of unknown version')}"
        return Check(name=name, status="have", evidence=f"{version} with {with_it}: {library} loads")
    return _broken(name, outcome, library, remedies)


def _broken(name: str, outcome: Outcome, library: str, remedies: Remedies) -> Check:
    """Name what is wrong with an import that gave no working Horovod."""
    answer = outcome.answers()
    error = str(answer.get("error", ""))
    if outcome.timed_out and not answer:
        evidence = f"importing Horovod for it {outcome.ending()}"
        return Check(name=name, status="unknown", evidence=evidence, remedy=remedies.hangs(name))
    if answer.get("imported"):
        evidence = f"Horovod for it imports, but has no init: {library} was not loaded"
    elif error and _is_wrong_mpi(error):
        evidence = f"wrong MPI: {library} was linked with another MPI than the one found now: {error}"
        return Check(name=name, status="missing", evidence=evidence, remedy=remedies.right_mpi(name))
    elif error:
        evidence = f"importing Horovod for it raises {error}"
    else:
        evidence = f"importing Horovod for it crashes: it {outcome.ending()} {outcome.last_words()}".rstrip()
    return Check(name=name, status="missing", evidence=evidence, remedy=remedies.rebuild(name))


def _is_wrong_mpi(error: str) -> bool:
    at_fault = "undefined symbol" in error or "cannot open shared object" in error or "version `" in error
    return at_fault and any(mark in error.partition(":")[2] for mark in _WRONG_MPI)


def _operation(
    name: str,
    facts: BuildFacts,
    found: Mapping[str, Any],
    boxes: check_build.Boxes | None,
    remedies: Remedies,
) -> Check:
    """What the functions of a library that loads say; where none loads, nobody knows."""
    said = {
        framework: outcome.answers()["built"][f"{name}_built"]
        for framework, outcome in facts.frameworks.items()
        if isinstance(outcome.answers().get("built"), dict)
        and f"{name}_built" in outcome.answers()["built"]
        and framework in found["libraries"]
    }
    version = f"Horovod {found.get('version') or 'of unknown version'}"
    if not said:
        return _unasked(name, version, found, remedies)
    evidence = f"{version}: " + ", ".join(f"{name}_built() is {value} for {f}" for f, value in said.items())
    drawn = boxes.line(name) if boxes else ""
    yes = [value not in (False, 0) and not isinstance(value, str) for value in said.values()]
    if drawn and ("[X]" in drawn) != any(yes):
        evidence += f"; horovodrun --check-build says otherwise ({drawn}): it may belong to another Horovod"
    if all(yes):
        return Check(name=name, status="have", evidence=evidence)
    return Check(name=name, status="missing", evidence=evidence, remedy=remedies.rebuild(name))


def _unasked(name: str, version: str, found: Mapping[str, Any], remedies: Remedies) -> Check:
    if not found["libraries"]:
        evidence = f"{version} in {found['folder']} has no compiled library at all"
        return Check(name=name, status="missing", evidence=evidence, remedy=remedies.rebuild(name))
    evidence = f"{version} has compiled libraries, but none of them loads, so it cannot be asked"
    return Check(name=name, status="unknown", evidence=evidence, remedy=remedies.load_first())


def _enabled(facts: BuildFacts, remedies: Remedies) -> Iterator[Check]:
    """What a start of one rank says of MPI's threads; it fails on some login nodes, which proves nothing."""
    for framework, outcome in facts.frameworks.items():
        answer = outcome.answers()
        if "started" not in answer or answer.get("built", {}).get("mpi_built") is not True:
            continue
        enabled = answer["enabled"]
        if enabled.get("mpi_enabled") is not True:
            evidence = f"{framework}: a start of one rank did not use MPI: {answer['started'] or enabled}"
            yield Check(name="mpi-threads", status="unknown", evidence=evidence)
        elif enabled.get("mpi_threads_supported") is True:
            yield Check(
                name="mpi-threads", status="have", evidence=f"{framework}: mpi_threads_supported() is True"
            )
        else:
            evidence = f"{framework}: mpi_threads_supported() is {enabled.get('mpi_threads_supported')}"
            yield Check(name="mpi-threads", status="missing", evidence=evidence, remedy=remedies.threads())
        return


# --- versions ----------------------------------------------------------------------------------------------


def judge_versions(
    facts: BuildFacts, remedies: Remedies, mpi_runtime: str | None = None
) -> tuple[Check, ...]:
    """Compare the versions with each other, with those of the build, and with the site's GPU."""
    found = facts.installed.answers() if facts.installed else {}
    versions = _versions(facts, found)
    if mpi_runtime:
        versions["mpi-runtime"] = mpi_runtime
    wrong = list(_changed_since_build(facts, found))
    checks = []
    pairs = bad_pairs(versions, remedies.features(), remedies.variables())
    wrong += [f"{pair.what} ({pair.source})" for pair in pairs if pair.certain]
    doubts = [f"{pair.what} ({pair.source})" for pair in pairs if not pair.certain]
    listed = ", ".join(f"{part} {version}" for part, version in versions.items())
    remedy = "; ".join(pair.remedy for pair in pairs)
    if wrong:
        evidence = f"{'; '.join(wrong)}. Found: {listed}"
        checks.append(
            Check(
                name="versions",
                status="missing",
                evidence=evidence,
                remedy=remedy or remedies.same_versions(),
            )
        )
    elif doubts:
        evidence = f"{'; '.join(doubts)}. Found: {listed}"
        checks.append(Check(name="versions", status="unknown", evidence=evidence, remedy=remedy))
    elif listed:
        checks.append(Check(name="versions", status="have", evidence=f"no known bad pair among {listed}"))
    arch = remedies.gpu_arch()
    return (*checks, *([_gpu_arch(arch, facts, remedies)] if arch else []))


def _versions(facts: BuildFacts, found: Mapping[str, Any]) -> dict[str, str]:
    """Return the version of each part that said one."""
    versions = {"horovod": str(found.get("version") or "")}
    for framework, outcome in facts.frameworks.items():
        said = outcome.answers().get("versions")
        if not isinstance(said, dict):
            continue
        versions[_MODULE[framework]] = str(said.get("framework") or "")
        for part in ("keras", "cuda", "rocm", "nccl"):
            if said.get(part):
                versions.setdefault(part, str(said[part]))
    for outcome in facts.linked.values():
        libraries = dict(linked_mpi(outcome.stdout))
        if any(name.startswith("libmpi_cxx.so.40") for name in libraries):
            versions["mpi-linked"] = "4"
    return {part: version for part, version in versions.items() if version}


def _changed_since_build(facts: BuildFacts, found: Mapping[str, Any]) -> Iterator[str]:
    """Name frameworks whose version differs from the one in metadata.json: Horovod then does not load."""
    metadata = found.get("metadata") or {}
    for key, framework in (("pytorch", "pytorch"), ("tensorflow", "tensorflow"), ("mxnet", "mxnet")):
        outcome = facts.frameworks.get(framework)
        said = outcome.answers().get("versions") if outcome else None
        now = said.get("framework") if isinstance(said, dict) else None
        if now and metadata.get(key) and metadata[key] != now:
            yield f"Horovod was built with {framework} {metadata[key]}, and {now} is installed now"


def _gpu_arch(arch: str, facts: BuildFacts, remedies: Remedies) -> Check:
    """Whether the framework holds code for the site's GPU; CUDA's age alone may rule it out."""
    name = "gpu-arch"
    for framework, outcome in facts.frameworks.items():
        said = outcome.answers().get("versions")
        if not isinstance(said, dict) or not (said.get("cuda") or said.get("rocm")):
            continue
        cuda, archs = said.get("cuda"), said.get("archs")
        words = f"{framework} {said.get('framework')}"
        if cuda and cuda_addresses(str(cuda), arch) is False:
            evidence = f"{words} is built with CUDA {cuda}, which has no {arch} (from {first_cuda(arch)} on)"
            return Check(name=name, status="missing", evidence=evidence, remedy=remedies.arch(arch))
        if isinstance(archs, list) and archs:
            there = arch in {str(each).replace("compute_", "sm_").partition(":")[0] for each in archs}
            evidence = f"{words} holds code for {', '.join(map(str, archs))}; the site's GPUs are {arch}"
            status: Status = "have" if there else "missing"
            return Check(
                name=name, status=status, evidence=evidence, remedy="" if there else remedies.arch(arch)
            )
    evidence = f"the site's GPUs are {arch}; no framework here says which GPUs it was built for"
    return Check(name=name, status="unknown", evidence=evidence, remedy=remedies.arch(arch))


def working_frameworks(facts: BuildFacts) -> tuple[str, ...]:
    """Return the frameworks whose Horovod loads, so that ranks of it can be started.

    Also without MPI: its ranks are each alone under a launcher, which nothing but their start shows.
    """
    return tuple(name for name, outcome in facts.frameworks.items() if outcome.answers().get("init"))


def lost_mpi(facts: BuildFacts) -> str | None:
    """Name the MPI library that a library file is linked with and the loader does not find."""
    for framework, outcome in facts.linked.items():
        for library, path in linked_mpi(outcome.stdout):
            if path == "not found":
                return f"Horovod's library for {framework} is linked with {library}, which is not found"
    return None


def linked_family(facts: BuildFacts) -> tuple[str, str] | None:
    """Return (family, evidence) of the MPI that the library files are linked with; None where not known."""
    for framework, outcome in facts.linked.items():
        for library, path in linked_mpi(outcome.stdout):
            named = family(f"{library} {path}")
            if named:
                return named, f"Horovod's library for {framework} is linked with {library} ({path})"
    return None
