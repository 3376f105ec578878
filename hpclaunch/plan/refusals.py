"""The words of refusals, ``refusals.yaml``. Pure."""

from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.package_data import package_table
from hpclaunch.plan.request import Problem


def refusal(case: str, **values: object) -> BadInputError:
    """Return the error of a case, ``SUBJECT: CASE``, with these values in its texts."""
    kind = SiteRuleError if case.startswith("site: ") else BadInputError
    return kind(*_texts(case, values))


def problem(case: str, **values: object) -> Problem:
    """Return the problem of a case: only submitting the job is refused."""
    message, hint = _texts(case, values)
    return Problem(message=message, hint=hint)


def _texts(case: str, values: dict[str, object]) -> tuple[str, str]:
    subject, _, key = case.partition(": ")
    message, hint = (text.format(**values) for text in package_table("plan/refusals.yaml")[subject][key])
    return message, hint
