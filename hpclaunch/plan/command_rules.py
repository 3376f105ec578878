"""Commands that cannot work as they are, found before anything is submitted. Pure."""

from __future__ import annotations

import re
import shlex

from hpclaunch.plan.launch_plan import Problem
from hpclaunch.plan.launcher_rules import launcher_problems
from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.program import python_target
from hpclaunch.plan.request import JobRequest
from hpclaunch.plan.software_settings import software_files
from hpclaunch.plan.zero_stage import deepspeed_config

_OPERATORS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", "&>"}
_CONFIG_OPTION = re.compile(r"--(?:\w+[-_])?config(?:[-_]file)?")
_CONFIG_FILE = re.compile(r".+\.(?:json|ya?ml|toml|cfg|ini)")


def command_problems(request: JobRequest, layout: JobLayout) -> tuple[Problem, ...]:
    """Return what is wrong with the words of a command, given its ranks."""
    if request.command.bundled:
        return ()
    argv = request.command.argv
    shell = f"-- bash -c {shlex.quote(' '.join(argv))}"
    problems = []
    if len(argv) == 1 and re.search(r"\s", argv[0].strip()):
        message = f"the command is one word with blanks, {argv[0]!r}: the name of a program"
        problems.append(Problem(message=message, hint=f"-- {argv[0]}, or for a shell to read it: {shell}"))
    if found := [word for word in argv if word in _OPERATORS]:
        message = f"{found[0]!r} reaches the program as an argument: no shell reads the command"
        problems.append(Problem(message=message, hint=shell))
    if re.match(r"[A-Za-z_]\w*=", argv[0]):
        message = f"{argv[0]!r} is taken for the name of a program: no shell reads the command"
        problems.append(Problem(message=message, hint=f"-- env {shlex.join(argv)}"))
    return (*problems, *launcher_problems(request, layout))


def needed_files(request: JobRequest) -> tuple[str, ...]:
    """Return the paths, from the job's folder, that the job cannot do without.

    They are the image of a container, a virtual environment, the Python file that the command starts, a
    program with a relative path, and configuration files. In a container absolute paths may be the image's.
    """
    software = software_files(request.environment)
    if request.command.bundled:
        return software
    program = _program_files(request.command.argv)
    if request.environment is not None and request.environment.container:
        program = [path for path in program if not path.startswith("/")]
    return tuple(dict.fromkeys((*software, *program)))


def _program_files(argv: tuple[str, ...]) -> list[str]:
    target = python_target(argv)
    paths = [target.file] if target and target.file else []
    if "/" in argv[0] and not argv[0].startswith("/"):
        paths.append(argv[0])
    if config := deepspeed_config(argv):
        paths.append(config)
    paths += _config_files(argv)
    return [path for path in paths if path]


def _config_files(argv: tuple[str, ...]) -> list[str]:
    found = []
    for word, following in zip(argv, (*argv[1:], ""), strict=True):
        option, equals, value = word.partition("=")
        file = value if equals else following
        if _CONFIG_OPTION.fullmatch(option) and _CONFIG_FILE.fullmatch(file):
            found.append(file)
    return found
