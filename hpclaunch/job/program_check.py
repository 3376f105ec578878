"""Requirements that a job's command lacks where it will run: files, and options that its program takes."""

import os
import sys
from pathlib import Path

from hpclaunch.host.host_interface import Host
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.package_data import package_constants, shell_words
from hpclaunch.plan.command_rules import needed_files
from hpclaunch.plan.preflight_plan import split_item
from hpclaunch.plan.request import JobRequest, Problem
from hpclaunch.plan.script_commands import program_at

_WORD = package_constants("job/forms.json", "program_check")


def file_problems(
    request: JobRequest, host: Host, workdir: str, copied: Path | None, *, elsewhere: bool
) -> tuple[Problem, ...]:
    """Return a problem for each needed file that is not in ``workdir`` on the host.

    Those with relative paths must be in the folder ``copied`` of this machine, if ``--sync`` names one;
    ``elsewhere``: the host is another machine.
    """
    paths, missing_in_copy = list(needed_files(request)), list[str]()
    if copied is not None:
        missing_in_copy = [p for p in paths if not p.startswith("/") and not os.path.exists(copied / p)]
        paths, workdir = [path for path in paths if path.startswith("/")], "/"
    found = [_missing(path, f"in {copied}, which --sync copies", None) for path in missing_in_copy]
    if not paths:
        return tuple(found)
    answer = host.run(
        (*shell_words(__file__, "looks.sh", "missing"), workdir, *paths), timeout_s=_WORD.look_s
    )
    for path in filter(None, answer.stdout.split("\0")):
        here = Path(path) if elsewhere else None
        where = f"in {workdir}" * (not path.startswith("/")) + f" on {host.name}" * elsewhere
        found.append(_missing(path, where.strip(), here))
    return tuple(found)


def unknown_program(request: JobRequest) -> tuple[Problem, ...]:
    """Return a problem where PATH lacks a local job's program; none if its software may bring folders."""
    argv = request.command.argv
    name = argv[program_at(argv)] if argv and not request.command.bundled else "/"
    own = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    if "/" in name or request.environment is not None:
        return ()
    import shutil  # few dry runs come here
    from difflib import get_close_matches

    if shutil.which(name, path=own):
        return ()
    near = " ".join(get_close_matches(name, ("python", "python3", "bash", "torchrun", "accelerate"), n=1))
    hint = f"did you mean {near}?" if near else "name its path, such as ./program"
    return (Problem(message=f"{name}: there is no such program on PATH", hint=hint),)


def _staged(request: JobRequest) -> tuple[str, ...]:
    """Return what is staged and must be there already: not after another job, nor by a variable's value."""
    from hpclaunch.remote.stage_sources import split_sum  # few jobs stage something

    paths = () if request.after else (split_sum(split_item(text)[0])[0] for text in request.stage)
    return tuple(path for path in paths if "$" not in path)


def missing_here(request: JobRequest, folder: Path) -> tuple[Problem, ...]:
    """Return a problem for each needed file that is not on this machine, for a dry run."""
    found = []
    for path in (*needed_files(request), *(_staged(request) if request.stage else ())):
        place = folder / path
        known = not path.startswith("/") or os.path.isdir(place.parent)
        if known and not os.path.exists(place):  # which takes a name of any length
            found.append(_missing(path, "here" if path.startswith("/") else f"in {folder}", None))
    return tuple(found)


def _missing(path: str, where: str, here: Path | None) -> Problem:
    hint = "the job runs in that folder; name the file from there"
    if path.startswith("/"):
        hint = "name one that is there"
    if here is not None and not here.is_absolute() and os.path.exists(here):
        hint = "it is in this folder here: --sync . copies the folder, and the job runs in the copy"
    return Problem(message=f"{path}: there is no such file {where}".rstrip(), hint=hint)


def option_problems(request: JobRequest) -> tuple[Problem, ...]:
    """Return what the bundled training says about its options, if anything."""
    if not (request.command.bundled and request.command.argv):
        return ()
    words = request.command.argv
    parser = ("measure_allreduces", *words[1:]) if words[:1] == ("bench",) else ("option_parser", *words)
    answer = LocalHost().run([sys.executable, "-c", _WORD.parse, *parser], timeout_s=_WORD.look_s)
    if answer.exit_code not in (2, 3):
        return ()
    message, _, usage = answer.stdout.strip().partition("\n")
    return (Problem(message=f"options of the training: {message}", hint=usage.strip() or None),)
