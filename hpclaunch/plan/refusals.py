"""The words of refusals, ``refusals.yaml``. Pure."""

from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.package_data import case_texts
from hpclaunch.plan.request import Problem

_TEXTS = "plan/refusals.yaml"


def refusal(case: str, **values: object) -> BadInputError:
    """Return the error of a case, ``SUBJECT: CASE``, with these values in its texts."""
    kind = SiteRuleError if case.startswith("site: ") else BadInputError
    return kind(*case_texts(_TEXTS, case, **values))


def problem(case: str, **values: object) -> Problem:
    """Return the problem of a case: only submitting the job is refused."""
    message, hint = case_texts(_TEXTS, case, **values)
    return Problem(message=message, hint=hint)
