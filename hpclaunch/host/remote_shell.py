"""Commands for the shell of another machine: words and paths arrive there unchanged.

The user's login shell there may be bash, zsh, csh or fish: it only reads characters that mean the same to all
of them, and starts ``sh``, which does the work.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence

from hpclaunch.errors import BadInputError

MARK = b"\x02hpclaunch\x03"
"""Printed before the program's own output: the user's start-up files may print anything before it."""
RUNS, NO_FOLDER, NO_PROGRAM = b"r", b"f", b"p"
"""The byte after the mark: the program was started, or why it was not."""

# Linux takes at most 128 KiB as one argument of a program, here of the login shell's -c.
_MAX_BYTES = 120_000
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./:=,@+-")


def remote_command(
    argv: Sequence[str], env: Mapping[str, str | None] | None = None, cwd: str | None = None
) -> str:
    """Return a command line that prints ``MARK``, one byte and the program's output, with its exit status.

    The exit status is 128+N where signal N ended the program. Raises BadInputError for a NUL byte, for a bad
    name of a variable and for arguments that are too long together.
    """
    steps = [f"printf '{_octal(MARK)}'"]
    if cwd is not None:
        steps.append(f"cd {_quote(cwd if cwd.startswith('/') else './' + cwd)} || {_stop(NO_FOLDER)}")
    for name, value in (env or {}).items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise BadInputError(f"{name!r} is not a name of an environment variable")
        steps.append(f"unset {name}" if value is None else f"export {name}={_quote(value)}")
    steps.append(f"{_is_program(argv[0])} || {_stop(NO_PROGRAM)}")
    steps.append(f"printf {RUNS.decode()}")
    # exec: the program itself, never a builtin of that name; in a subshell: a signal gives 128+N.
    steps.append(f"(exec {' '.join(_quote(word) for word in argv)})")
    steps.append("exit $?")
    command = f"""exec sh -c 'eval "$(printf "{_octal(os.fsencode("; ".join(steps)))}")"'"""
    if len(command) > _MAX_BYTES:
        raise BadInputError(f"{argv[0]}: {len(command)} bytes of arguments are too many for one ssh command")
    return command


def _is_program(name: str) -> str:
    """Return a shell test that succeeds where the program exists."""
    program = _quote(name)
    return f"[ -f {program} ] && [ -x {program} ]" if "/" in name else f"command -v {program} >/dev/null"


def _stop(reason: bytes) -> str:
    return f"{{ printf {reason.decode()}; exit 1; }}"


def _quote(text: str) -> str:
    if "\0" in text:
        raise BadInputError(f"{text!r}: no argument may hold a NUL byte")
    return shlex.quote(text)


def _octal(data: bytes) -> str:
    r"""Write bytes for printf: plain characters unchanged, all others as ``\ooo``."""
    return "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in data)
