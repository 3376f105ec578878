"""The errors that a user may see. Each ends the command with its exit code and one clear message."""

EXIT_FAILED = 1
EXIT_BAD_INPUT = 3
EXIT_REFUSED = 4
EXIT_INTERRUPTED = 130


class HpclaunchError(Exception):
    """Root of all expected errors.

    ``message`` says which file, key or line, and what was found; ``hint`` says what would be right.
    """

    exit_code = EXIT_FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

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
