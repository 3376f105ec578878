"""Commands for the shell of another machine: words and paths arrive there exactly as they were given.

Whatever login shell a person has there (bash, zsh, csh, fish), it only ever reads signs that mean the same
to all of them; the work is done by ``sh``.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence

from hpclaunch.errors import BadInputError

MARK = b"\x02hpclaunch\x03"
"""What our own output starts after: a person's start-up files may print anything before it."""
RUNS, NO_FOLDER, NO_PROGRAM = b"r", b"f", b"p"
"""The sign after the mark: the program was started, or why it was not."""

# Linux takes at most 128 KiB as one argument of a program, here of the login shell's -c.
_MAX_BYTES = 120_000
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./:=,@+-")


def remote_command(
    argv: Sequence[str], env: Mapping[str, str | None] | None = None, cwd: str | None = None
) -> str:
    """Return a command line that prints ``MARK``, a sign and what the program prints, and ends as it does.

    A program that signal N ended gives 128+N. Raises BadInputError for what no command line can hold.
    """
    steps = [f"printf '{_octal(MARK)}'"]
    if cwd is not None:
        steps.append(f"cd {_quote(cwd if cwd.startswith('/') else './' + cwd)} || {_stop(NO_FOLDER)}")
    for name, value in (env or {}).items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise BadInputError(f"{name!r} is no name of an environment variable")
        steps.append(f"unset {name}" if value is None else f"export {name}={_quote(value)}")
    program = _quote(argv[0])
    is_there = (
        f"[ -f {program} ] && [ -x {program} ]" if "/" in argv[0] else f"command -v {program} >/dev/null"
    )
    steps.append(f"{is_there} || {_stop(NO_PROGRAM)}")
    steps.append(f"printf {RUNS.decode()}")
    # exec: the program itself and never a builtin of that name; in a subshell: its end is told as 128+N.
    steps.append(f"(exec {' '.join(_quote(word) for word in argv)})")
    steps.append("exit $?")
    command = f"""exec sh -c 'eval "$(printf "{_octal(os.fsencode("; ".join(steps)))}")"'"""
    if len(command) > _MAX_BYTES:
        raise BadInputError(f"{argv[0]}: {len(command)} bytes of arguments are too many for one ssh command")
    return command


def _stop(sign: bytes) -> str:
    return f"{{ printf {sign.decode()}; exit 1; }}"


def _quote(text: str) -> str:
    if "\0" in text:
        raise BadInputError(f"{text!r}: no argument may hold a NUL byte")
    return shlex.quote(text)


def _octal(data: bytes) -> str:
    r"""Write bytes for printf: letters as they are, all that a shell or printf might read as ``\ooo``."""
    return "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in data)
