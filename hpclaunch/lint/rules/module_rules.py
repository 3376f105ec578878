"""Rules about the modules that a script loads."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.lint_rule import Context, Violation, rule
from hpclaunch.shell.shell_syntax import Command
from hpclaunch.software.known_pairs import cuda_addresses, first_cuda

_VERSION = {name: re.compile(form) for name, form in TABLE["module_versions"].items()}
_VERBS = {verb: does for does, verbs in TABLE["module_verbs"].items() for verb in verbs.split()}
_GPU_NAMES: dict[str, str] = TABLE["gpu_names"]


class Module(NamedTuple):
    """One module that is loaded."""

    name: str
    line: int


def loaded(script: Script) -> list[Module]:
    """Return the modules that are loaded at the end of the script's text, in order."""
    modules: list[Module] = []
    for command in script.commands:
        if command.name in ("module", "ml") and not command.depth:
            modules = _after(command, modules)
    return modules


def ever_loaded(script: Script) -> list[str]:
    """Return the names of all modules that are loaded anywhere, also where they are unloaded later."""
    commands = [one for one in script.commands if one.name in ("module", "ml")]
    return [module.name for one in commands for module in _after(one, [])]


def _after(command: Command, modules: list[Module]) -> list[Module]:
    """Return the modules that are loaded after a module command, given those before it."""
    does, names = _does_and_names(command)
    if does == "empty":
        return []
    if does == "unload":
        return _without(modules, names)
    if does == "replace":
        return _with(_without(modules, names[:1]), names[-1:], command.line)
    return _with(modules, names, command.line) if does == "load" else modules


def _does_and_names(command: Command) -> tuple[str, list[str]]:
    """Return what a module command does and its other words; ``ml NAME`` loads."""
    texts = [word.text or "" for word in command.words[1:]]
    words = [text for text in texts if not text.startswith("--")]
    verb = words[0] if words else ""
    if command.name == "module" or verb in _VERBS:
        return _VERBS.get(verb, ""), words[1:]
    return "load", words


def _with(modules: list[Module], names: list[str], line: int) -> list[Module]:
    """Return the modules after loading these; ``-NAME`` unloads."""
    unloaded = [name[1:] for name in names if name.startswith("-")]
    new = [Module(name, line) for name in names if name and not name.startswith("-")]
    return _without(modules, unloaded) + new


def _without(modules: list[Module], names: list[str]) -> list[Module]:
    """Return the modules without those that are named, with version or without."""
    return [module for module in modules if not {module.name, module.name.split("/")[0]}.intersection(names)]


@rule("module-cuda-mismatch")
def module_cuda_mismatch(context: Context) -> Iterator[Violation]:
    for stack in ("CUDA", "ROCm"):
        remedy = f"load modules that were built with one {stack}"
        found = list(_versions(context.script, stack))
        for module, version in (one for one in found if one[1] != found[0][1]):
            first, wanted = found[0]
            other = f"{first.name} (line {first.line}) for {stack} {_dotted(wanted)}"
            message = f"{module.name} is for {stack} {_dotted(version)}, {other}"
            yield Violation(module.line, message, remedy, "warning" if version[0] == wanted[0] else None)


def _versions(script: Script, stack: str) -> Iterator[tuple[Module, tuple[int, int]]]:
    built = (word for one in script.commands if one.name == "eb" for word in one.words[1:])
    names = [Module(f"eb/{word.visible}", word.line) for word in built if word.visible.endswith(".eb")]
    for module in sorted([*loaded(script), *names], key=lambda one: one.line):
        if match := _VERSION[stack].search(module.name):
            yield module, (int(match[1][:4]), int(match[2][:4]))


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


@rule("cuda-too-old-for-gpu")
def cuda_too_old_for_gpu(context: Context) -> Iterator[Violation]:
    arch = (context.node.gpu_arch if context.node else None) or ""
    for module, version in _versions(context.script, "CUDA"):
        if cuda_addresses(_dotted(version), arch) is False:
            gpu = f"{arch} ({_GPU_NAMES[arch]})" if arch in _GPU_NAMES else arch
            first = f"the first version that does is {first_cuda(arch)}"
            message = f"{module.name}: CUDA {_dotted(version)} does not support {gpu}; {first}"
            yield Violation(module.line, message)


@rule("module-gpu-vendor")
def module_gpu_vendor(context: Context) -> Iterator[Violation]:
    profile, node = context.profile, context.node
    pattern = TABLE["of_other_vendors"].get(node.gpu_vendor) if node else None
    if profile is None or node is None or pattern is None:
        return
    gpus = node.gpu_model or f"by {node.gpu_vendor}"
    for module in loaded(context.script):
        if re.match(pattern, module.name):
            yield Violation(module.line, f"{module.name}, but the GPUs of {profile.name} are {gpus}")
