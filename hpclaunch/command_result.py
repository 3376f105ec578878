"""The result of a command: the one type that hosts return and schedulers read."""

import msgspec


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """The output of a command and its exit status."""

    exit_code: int
    stdout: str
    stderr: str
