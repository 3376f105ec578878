"""The errors that a user may see. Each ends the command with its exit code and one clear message."""

from typing import TypeVar

from hpclaunch.package_data import case_texts

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
