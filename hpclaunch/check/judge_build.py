"""Verdicts on a Horovod build, from the collected facts, and a site's remedies for what is missing. Pure."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec

from hpclaunch.check.check_report import Check, Status, verdict
from hpclaunch.check.facts import MODULES, NOT_FOUND, BuildFacts, Outcome
from hpclaunch.package_data import package_constants
from hpclaunch.site.schema import SiteProfile
from hpclaunch.software.horovod_facts import rebuild_command
from hpclaunch.software.known_pairs import bad_pairs, cuda_addresses, first_cuda, linked_mpi, mpi_family

LIMIT = package_constants("check/limits.yaml", "builds")


class Remedies(msgspec.Struct, frozen=True, kw_only=True):
    """Remedies for one site; ``profile`` None: the site is not known."""

    profile: SiteProfile | None = None
    framework: str = "pytorch"

    def rebuild(self, name: str) -> str:
        """Return the line that builds Horovod with a part."""
        if name == "ddl":
            return "nothing: DDL is part of IBM's PowerAI only"
        framework = LIMIT.frameworks.get(name, self.framework)
        command = rebuild_command(self.profile, framework)
        extra = LIMIT.variables.get(name, "")
        if extra.strip() in command.split():
            extra = ""
        ways = ""
        if framework in ("pytorch", "torch", "tensorflow"):
            why = "" if framework == "tensorflow" else "; torch from 2.1 on needs C++17"
            ways = f"{why}; all ways: {self.plan(framework)}"
        return f"rebuild: {extra}{command}{ways}"

    def plan(self, framework: str) -> str:
        """Return the command that shows all ways to install Horovod for a framework."""
        site = self.profile.name if self.profile else "local"
        return f"hpclaunch software plan --site {site} --for horovod-{LIMIT.short.get(framework, framework)}"

    def right_mpi(self, name: str) -> str:
        """Return how to bring the library and its MPI together."""
        implementation = self.profile.mpi.implementation if self.profile else None
        with_it = f" with {implementation}" if implementation else ""
        return f"load the MPI that Horovod was built with, or {self.rebuild(name)}{with_it}"

    def arch(self, arch: str) -> str:
        """Return what a build for an architecture needs."""
        first = first_cuda(arch)
        if first:
            return f"use a framework built with CUDA {first} or newer for {arch}"
        return f"use a framework built for {arch}"

    def features(self) -> frozenset[str]:
        """Return what the site is: its fabric's kind and its GPU's architecture."""
        if self.profile is None:
            return frozenset()
        node = self.profile.node
        words = {self.profile.fabric.kind, node.gpu_arch if node else None}
        return frozenset(word for word in words if word)

    def gpu_arch(self) -> str | None:
        """Return the architecture of the site's GPUs; None where it has none or is not known."""
        node = self.profile.node if self.profile else None
        return node.gpu_arch if node and node.gpus else None

    def variables(self) -> dict[str, str]:
        """Return the variables that the site's profile sets in every job."""
        if self.profile is None:
            return {}
        merged = {**self.profile.fabric.common, **self.profile.env}
        return {name: each.value for name, each in merged.items() if each.value is not None}


# The command always exits with status 0, and up to 0.24.3 it may lose its output in a pipe (``os._exit``).
# Its boxes for controllers and operations come from the first extension that loads. A framework's box says
# only that ``import horovod.NAME`` raised no exception; for torch it raises none even without native code
# or without torch itself (horovod/torch/__init__.py, 0.28.1).

_VERSION = re.compile(r"^[ \t]*Horovod v(\S+?):[ \t]*$", re.MULTILINE)
_SECTION = re.compile(r"^[ \t]*Available (Frameworks|Controllers|Tensor Operations):[ \t]*$")
_BOX = re.compile(r"^[ \t]*\[([Xx ]?)\][ \t]*([A-Za-z][\w .+-]*?)[ \t]*$")
_SENTENCE = re.compile(LIMIT.sentence)


class Boxes(msgspec.Struct, frozen=True, kw_only=True):
    """The boxes, by section and lower-case name; CCL's box was called MLSL up to 0.18.2."""

    version: str | None
    frameworks: dict[str, bool] = {}
    controllers: dict[str, bool] = {}
    operations: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self.frameworks or self.controllers or self.operations)

    def line(self, name: str) -> str:
        """Quote the boxes of a name, such as ``Controllers [X] MPI, Tensor Operations [ ] MPI``."""
        found = [
            f"{title} [{'X' if section[name] else ' '}]"
            for title, key in LIMIT.sections.items()
            if name in (section := getattr(self, key))
        ]
        return ", ".join(found)


def parse_boxes(text: str) -> Boxes:
    """Read the boxes in any text; other lines (warnings, --verbose) and colours are ignored.

    An empty or unrelated text has no boxes; a box outside of a section is not counted. Sentences such as
    "Horovod is compiled with NCCL support" count as boxes of operations.
    """
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "")
    version = _VERSION.search(plain)
    sections: dict[str, dict[str, bool]] = {key: {} for key in LIMIT.sections.values()}
    current: dict[str, bool] | None = None
    for line in plain.splitlines():
        if section := _SECTION.match(line):
            current = sections[LIMIT.sections[section[1]]]
        elif (box := _BOX.match(line)) and current is not None:
            name = {"mlsl": "ccl"}.get(box[2].lower(), box[2].lower())
            if name in (*BOX_NAMES, "keras"):
                current[name] = box[1] in ("X", "x")
    for negated, what in _SENTENCE.findall(plain):
        name = "mpi" if what.lower() == "horovod" else what.lower()
        sections["operations"].setdefault(name, not negated)
    return Boxes(version=version[1] if version else None, **sections)


BOX_NAMES = (*LIMIT.box_operations, *LIMIT.box_frameworks)
"""Features in ``horovodrun --check-build``; none of its releases has one for CUDA, ROCm or the GPU."""
_OPERATIONS = (*LIMIT.box_operations, "cuda", "rocm")

# --- from the text alone -----------------------------------------------------------------------------------


def judge_text(boxes: Boxes, origin: str, remedies: Remedies) -> tuple[Check, ...]:
    """Judge only what ``--check-build`` printed; ``origin``: the file that has it.

    Controllers and operations are as in the boxes. A framework is never ``have``: its box is filled even if
    nothing native was compiled, or if the framework is not installed.
    """
    spoken = (name for name in ("cuda", "rocm") if name in boxes.operations)
    return tuple(_from_box(name, boxes, origin, remedies) for name in (*BOX_NAMES, *spoken))


def _from_box(name: str, boxes: Boxes, origin: str, remedies: Remedies) -> Check:
    evidence = f"{origin}: Horovod {boxes.version or 'of unknown version'} says {boxes.line(name)}"
    sections = [getattr(boxes, key) for key in LIMIT.sections.values()]
    marks = [section[name] for section in sections if name in section]
    if not marks:
        why = "there is no box with this name" if boxes else "there are no boxes (the output may be lost)"
        return verdict("box: none", name, origin=origin, why=why)
    case = "empty" if not all(marks) else "of a framework" if name in LIMIT.box_frameworks else "filled"
    return verdict(f"box: {case}", name, evidence=evidence, remedy=remedies.rebuild(name))


def judge_build(facts: BuildFacts, remedies: Remedies, open_mpi: str | None = None) -> tuple[Check, ...]:
    """Judge an installed build by its library files, imports and functions, and by its boxes.

    ``open_mpi``: version of the Open MPI that ranks use at run time; None: not known, or another MPI.
    """
    outcome = facts.installed or Outcome(exit_code=NOT_FOUND)
    installed = outcome.answers()
    if not installed:
        no_python = judge_interpreter(outcome, "the interpreter")
        return (no_python,) if no_python else ()
    if not installed.get("folder"):
        return (_not_installed(installed, remedies),)
    frameworks = tuple(_framework(name, facts, installed, remedies) for name in MODULES)
    boxes = parse_boxes(facts.check_build.stdout) if facts.check_build else None
    operations = tuple(_operation(name, facts, installed, boxes, remedies) for name in _OPERATIONS)
    return (*operations, *frameworks, *_enabled(facts), *judge_versions(facts, remedies, open_mpi))


def judge_interpreter(outcome: Outcome, python: str) -> Check | None:
    """Judge whether the interpreter that trains runs at all; None: it does, and gave its answers."""
    if outcome.answers():
        return None
    why = "" if outcome.exit_code == NOT_FOUND else outcome.last_error_line()
    ending = f"{'it ' * (outcome.exit_code != NOT_FOUND)}{outcome.ending()}{f': {why}' if why else ''}"
    status: Status = "unknown" if outcome.timed_out else "missing"
    return verdict("python: does not run", status=status, python=python, ending=ending)


def _not_installed(installed: Mapping[str, Any], remedies: Remedies) -> Check:
    """Return one verdict: no part of Horovod can be judged."""
    others = [name for name in LIMIT.without_horovod if name in installed["modules"]]
    there = f"; {' and '.join(others)} {'is' if len(others) == 1 else 'are'} installed" if others else ""
    found = verdict(
        "horovod: not installed",
        python=installed["python"],
        version=installed["python_version"],
        others=there,
        remedy=f"all ways to install it: {remedies.plan(remedies.framework)}",
    )
    return msgspec.structs.replace(found, instead=tuple(others))


def _framework(name: str, facts: BuildFacts, installed: Mapping[str, Any], remedies: Remedies) -> Check:
    """Judge a framework: its library file must exist, its import must work, and it must have ``init``."""
    module, library = MODULES[name], installed["libraries"].get(name)
    values = {"horovod": _version_of(installed), "module": module, "library": library}
    if library is None:
        there = "is installed" if module in installed["modules"] else "is not installed either"
        values |= {"folder": installed["folder"], "remedy": remedies.rebuild(name), "there": there}
        return verdict("framework: no library", name, **values)
    outcome = facts.frameworks.get(name)
    if outcome is None:
        return verdict("framework: not installed", name, python=installed["python"], **values)
    answer = outcome.answers()
    if answer.get("imported") and answer.get("init"):
        version = stated_versions(outcome).get("framework", "of unknown version")
        return verdict("framework: loads", name, version=version, **values)
    return _broken(name, outcome, library, remedies)


def _version_of(installed: Mapping[str, Any]) -> str:
    return f"Horovod {installed.get('version') or 'of unknown version'}"


def _broken(name: str, outcome: Outcome, library: str, remedies: Remedies) -> Check:
    """Judge an import that gave no working Horovod."""
    answer = outcome.answers()
    error = str(answer.get("error", ""))
    if outcome.timed_out and not answer:
        return verdict("framework: hangs", name, ending=outcome.ending())
    if error and not answer.get("imported") and _is_wrong_mpi(error):
        remedy = remedies.right_mpi(name)
        return verdict("framework: wrong MPI", name, library=library, error=error, remedy=remedy)
    case = "no init" if answer.get("imported") else "raises" if error else "crashes"
    ending = f"{outcome.ending()} {outcome.last_error_line()}".rstrip()
    values: dict[str, Any] = {
        "library": library,
        "error": error,
        "ending": ending,
        "remedy": remedies.rebuild(name),
    }
    return verdict(f"framework: {case}", name, **values)


def _is_wrong_mpi(error: str) -> bool:
    at_fault = "undefined symbol" in error or "cannot open shared object" in error or "version `" in error
    return at_fault and any(mark in error.partition(":")[2] for mark in LIMIT.wrong_mpi)


def _operation(
    name: str, facts: BuildFacts, installed: Mapping[str, Any], boxes: Boxes | None, remedies: Remedies
) -> Check:
    """Judge an operation by the functions of the libraries that load; if none loads, it is not known."""
    built, remedy = _built(name, facts, installed), remedies.rebuild(name)
    if not built:
        case = "operation: not asked" if installed["libraries"] else "operation: no library"
        return verdict(case, name, horovod=_version_of(installed), folder=installed["folder"], remedy=remedy)
    evidence = f"{_version_of(installed)}: " + ", ".join(
        f"{name}_built() is {value} for {f}" for f, value in built.items()
    )
    box = boxes.line(name) if boxes else ""
    yes = [value not in (False, 0) and not isinstance(value, str) for value in built.values()]
    if box and ("[X]" in box) != any(yes):
        evidence += f"; horovodrun --check-build differs ({box}): it may belong to another Horovod"
    case = "operation: built" if all(yes) else "operation: not built"
    return verdict(case, name, evidence=evidence, remedy=remedy)


def _built(name: str, facts: BuildFacts, installed: Mapping[str, Any]) -> dict[str, Any]:
    function, found = f"{name}_built", {}
    for framework, outcome in facts.frameworks.items():
        answers = outcome.answers().get("built")
        if framework in installed["libraries"] and isinstance(answers, dict) and function in answers:
            found[framework] = answers[function]
    return found


def _enabled(facts: BuildFacts) -> Iterator[Check]:
    """Judge MPI's threads by a start of one rank; on some login nodes it fails, which proves nothing."""
    for framework, outcome in facts.frameworks.items():
        answer = outcome.answers()
        if "started" not in answer or answer.get("built", {}).get("mpi_built") is not True:
            continue
        enabled = answer["enabled"]
        threads = enabled.get("mpi_threads_supported")
        case = "supported" if threads is True else "not supported"
        case = case if enabled.get("mpi_enabled") is True else "without MPI"
        why = answer["started"] or enabled
        yield verdict(f"mpi-threads: {case}", framework=framework, value=threads, why=why)
        return


def judge_versions(facts: BuildFacts, remedies: Remedies, open_mpi: str | None = None) -> tuple[Check, ...]:
    """Compare the versions with each other, with those of the build, and with the site's GPU."""
    installed = facts.installed.answers() if facts.installed else {}
    versions = _versions(facts, installed)
    if open_mpi:
        versions["mpi-runtime"] = open_mpi
    arch = remedies.gpu_arch()
    return (
        *_pairs(versions, list(_changed_since_build(facts, installed)), remedies),
        *([_gpu_arch(arch, facts, remedies)] if arch else []),
    )


def _pairs(versions: dict[str, str], changed: list[str], remedies: Remedies) -> Iterator[Check]:
    """Judge the versions; ``changed``: sentences about frameworks that changed after the build."""
    pairs = bad_pairs(versions, remedies.features(), remedies.variables())
    said = attrgetter("with_source")
    wrong = [*changed, *map(said, filter(attrgetter("certain"), pairs))]
    problems = "; ".join(wrong or map(said, pairs))
    listed = ", ".join(f"{part} {version}" for part, version in versions.items())
    if problems or listed:
        usual = f"install the version of the build, or {remedies.rebuild(remedies.framework)}"
        remedy = "; ".join(map(attrgetter("remedy"), pairs)) or usual
        case = "wrong" if wrong else "doubtful" if problems else "right"
        yield verdict(f"versions: {case}", problems=problems, listed=listed, remedy=remedy)


def stated_versions(outcome: Outcome) -> dict[str, Any]:
    """Return the versions that a framework reported; empty: none."""
    versions = outcome.answers().get("versions")
    return versions if isinstance(versions, dict) else {}


def _versions(facts: BuildFacts, installed: Mapping[str, Any]) -> dict[str, str]:
    versions = {"horovod": str(installed.get("version") or "")}
    for framework, outcome in facts.frameworks.items():
        _add_stated(versions, MODULES.get(framework, framework), stated_versions(outcome))
    libraries = [name for outcome in facts.linked.values() for name, _ in linked_mpi(outcome.stdout)]
    if any(name.startswith("libmpi_cxx.so.40") for name in libraries):  # of Open MPI 4
        versions["mpi-linked"] = "4"
    return {part: version for part, version in versions.items() if version}


def _add_stated(versions: dict[str, str], module: str, stated: dict[str, Any]) -> None:
    if stated:
        versions[module] = str(stated.get("framework") or "")
    for part in ("keras", "cuda", "rocm", "nccl"):
        if stated.get(part):
            versions.setdefault(part, str(stated[part]))


def _changed_since_build(facts: BuildFacts, installed: Mapping[str, Any]) -> Iterator[str]:
    """Yield frameworks whose version differs from the one in metadata.json: Horovod then does not load."""
    metadata = installed.get("metadata") or {}
    for framework in ("pytorch", "tensorflow", "mxnet"):
        outcome = facts.frameworks.get(framework)
        now = stated_versions(outcome).get("framework") if outcome else None
        if now and metadata.get(framework) and metadata[framework] != now:
            yield f"Horovod was built with {framework} {metadata[framework]}, and {now} is installed now"


def _gpu_arch(arch: str, facts: BuildFacts, remedies: Remedies) -> Check:
    """Judge whether the framework has code for the site's GPU; an old CUDA alone may rule it out."""
    judged = partial(verdict, arch=arch, first=first_cuda(arch), remedy=remedies.arch(arch))
    for framework, outcome in facts.frameworks.items():
        stated = stated_versions(outcome)
        program = f"{framework} {stated.get('framework')}"
        cuda, archs = stated.get("cuda"), stated.get("archs")
        if cuda and cuda_addresses(str(cuda), arch) is False:
            return judged("gpu-arch: old CUDA", program=program, cuda=cuda)
        if (cuda or stated.get("rocm")) and isinstance(archs, list) and archs:
            there = {str(each).replace("compute_", "sm_").partition(":")[0] for each in archs}
            case = "gpu-arch: right" if arch in there else "gpu-arch: wrong"
            return judged(case, program=program, archs=", ".join(map(str, archs)))
    return judged("gpu-arch: not reported")


def working_frameworks(facts: BuildFacts) -> tuple[str, ...]:
    """Return the frameworks whose Horovod loads; without MPI each rank is alone, which only a start shows."""
    return tuple(name for name, outcome in facts.frameworks.items() if outcome.answers().get("init"))


def lost_mpi(facts: BuildFacts) -> str | None:
    """Return a sentence about an MPI library that Horovod is linked with and that is not found; else None."""
    for framework, outcome in facts.linked.items():
        for library, path in linked_mpi(outcome.stdout):
            if path == "not found":
                return f"Horovod's library for {framework} is linked with {library}, which is not found"
    return None


def linked_family(facts: BuildFacts) -> tuple[str, str] | None:
    """Return (family, evidence) of the MPI that the library files are linked with; None: not known."""
    for framework, outcome in facts.linked.items():
        for library, path in linked_mpi(outcome.stdout):
            named = mpi_family(f"{library} {path}")
            if named:
                return named, f"Horovod's library for {framework} is linked with {library} ({path})"
    return None
