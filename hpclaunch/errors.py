"""The errors that a user may see, and the texts of errors and notes, which are in tables.

An error ends the command with its exit code and one clear message.
"""

from typing import Any, TypeVar

from hpclaunch.package_data import package_table

EXIT_FAILED = 1
EXIT_BAD_INPUT = 3
EXIT_REFUSED = 4
EXIT_INTERRUPTED = 130

_Error = TypeVar("_Error", bound="HpclaunchError")


class HpclaunchError(Exception):
    """Root of all expected errors.

    ``message`` says which file, key or line, and what was found; ``hint`` says what would be right.
    """

    exit_code = EXIT_FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @classmethod
    def case(cls: type[_Error], name: str, /, **values: object) -> _Error:
        """Return the error of a case of ``refusals.yaml``, ``SUBJECT: CASE``, with these values."""
        return cls(*case_texts("refusals.yaml", name, **values))

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class BadInputError(HpclaunchError):
    """A profile, request, capture or data file that cannot be used."""

    exit_code = EXIT_BAD_INPUT


class SiteRuleError(BadInputError):
    """A request that the site would refuse or change; the message names the rule and its source."""


class RefusedError(HpclaunchError):
    """The scheduler or the host refused, or could not be reached."""

    exit_code = EXIT_REFUSED


def case_texts(file: str, case: str, /, **values: object) -> Any:
    """Return what a table of texts has for a case, with these values in place of ``{words}``.

    ``case``: its keys, ``: `` between them. A row is a text, a list of texts, or texts by name.
    """
    row = package_table(file)
    for key in case.split(": "):
        row = row[key]
    return _filled(row, values)


def note_text(case: str, /, **values: object) -> str:
    """Return a note of ``notes.yaml`` with these values in it."""
    return str(case_texts("notes.yaml", case, **values))


def _filled(row: Any, values: dict[str, object]) -> Any:
    if isinstance(row, dict):
        return {key: _filled(part, values) for key, part in row.items()}
    return [_filled(part, values) for part in row] if isinstance(row, list) else row.format(**values)
