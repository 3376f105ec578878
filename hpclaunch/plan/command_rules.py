"""Commands that cannot work as they are, found before anything is submitted. Pure."""

import re
import shlex
from pathlib import PurePosixPath

from hpclaunch.plan.frameworks import deepspeed_config
from hpclaunch.plan.launch_plan import Problem
from hpclaunch.plan.launcher_rules import launcher_problems
from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.program import python_target
from hpclaunch.plan.request import JobRequest
from hpclaunch.plan.script_commands import named_shell, shell_target
from hpclaunch.plan.software_settings import software_files
from hpclaunch.plan.wrappers import unwrap

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
    if (name := PurePosixPath(argv[0]).name) in ("sbatch", "qsub", "bsub", "salloc"):
        message = f"{name} is started by each rank of this job, and submits another one"
        problems.append(
            Problem(message=message, hint="hpclaunch port SCRIPT --to SITE makes a job of a script")
        )
    return (*problems, *launcher_problems(request, layout))


def command_notes(argv: tuple[str, ...], directives: str | None) -> tuple[str, ...]:
    """Return notes about the words before a program.

    ``directives``: how the directives begin that the started script has. Sources: conda/cli/main_run.py
    (``--no-capture-output``, from 4.9 on), conda's issue 10351 (signals), man nohup; ranks of Open MPI 5.0.11
    have a terminal as stdout, where nohup was seen to write into its file.
    """
    started, notes = unwrap(argv), []
    if "nohup" in started.wrappers:
        notes.append(
            "nohup is of no use in a job, which goes on when the user logs out; under Open MPI's mpiexec it"
            " also takes the output away from the log, into nohup.out"
        )
    if started.python == "conda run":
        if not {"-s", "--no-capture-output", "--live-stream"}.intersection(started.options):
            notes.append(
                "conda run holds the output back until the program has ended: add --no-capture-output, or"
                " leave conda run out and use --conda"
            )
        notes.append(
            "conda run does not hand SIGTERM on: the program is not warned before the job ends; --conda is"
            " without that"
        )
    if directives:
        notes.append(
            f"the job starts a batch script as a program in each rank, and its {directives} lines are"
            " comments there; hpclaunch port makes a job of such a script"
        )
    return tuple(notes)


def needed_files(request: JobRequest) -> tuple[str, ...]:
    """Return the paths, from the job's folder, that the job cannot do without.

    They are the image of a container, a virtual environment, the Python file or script that the command
    starts, a program with a relative path, and configuration files. In a container absolute paths may be the
    image's.
    """
    software = software_files(request.environment)
    if request.command.bundled:
        return software
    program = _program_files(request.command.argv)
    if request.environment is not None and request.environment.container:
        program = [path for path in program if not path.startswith("/")]
    return tuple(dict.fromkeys((*software, *program)))


def _program_files(argv: tuple[str, ...]) -> list[str]:
    started, config = unwrap(argv), deepspeed_config(argv)
    paths = [*_launched_files(argv, started.at), *([config] if config else []), *_config_files(argv)]
    # Where a wrapper changes the folder, the program does not look from the job's.
    return [path for path in paths if path.startswith("/")] if started.moved else paths


def _launched_files(argv: tuple[str, ...], at: int) -> list[str]:
    """Return the files that a command runs, ``at`` being its program; an address is none."""
    targets = (python_target(argv), shell_target(argv) if named_shell(argv) else None)
    paths = [target.file for target in targets if target is not None and target.file]
    paths += [word for word in (argv[0], argv[at]) if "/" in word and not word.startswith("/")]
    return [path for path in paths if "://" not in path]


def _config_files(argv: tuple[str, ...]) -> list[str]:
    found = []
    for word, following in zip(argv, (*argv[1:], ""), strict=True):
        option, equals, value = word.partition("=")
        file = value if equals else following
        if _CONFIG_OPTION.fullmatch(option) and _CONFIG_FILE.fullmatch(file):
            found.append(file)
    return found
