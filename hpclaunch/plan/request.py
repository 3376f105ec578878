"""JobRequest, the first of the three forms of a job; LaunchPlan and JobRecord follow from it."""

from typing import TYPE_CHECKING

import msgspec

from hpclaunch.errors import case_texts
from hpclaunch.plan.settings_table import SettingsTable, rows
from hpclaunch.site.schema import Environment


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """The command that every rank runs."""

    argv: tuple[str, ...]
    bundled: bool = False
    config: dict[str, str] = {}


if TYPE_CHECKING:
    JobRequest = SettingsTable
else:
    _NAMED = {"command": Command, "environment": Environment | None}
    JobRequest = msgspec.defstruct(
        "JobRequest",
        [
            (row.name, _NAMED.get(row.name, row.type), *([] if row.default is ... else [row.default]))
            for row in rows()
        ],
        namespace={"__doc__": SettingsTable.__doc__},
        module=__name__,
        frozen=True,
        kw_only=True,
    )

NOT_GIVEN = ("centre config", "site profile", "default", "computed", "the allocation")
"""How the origins of settings begin that no user gave."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting and where its value comes from; ``submit --explain`` prints these."""

    name: str
    value: str | None
    origin: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job would fail as it is: submitting it is refused, a dry run warns."""

    message: str
    hint: str | None

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


def problem(case: str, **values: object) -> Problem:
    """Return the problem of a case of ``refusals.yaml``."""
    message, hint = case_texts("refusals.yaml", case, **values)
    return Problem(message=message, hint=hint)
