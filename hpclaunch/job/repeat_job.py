"""A recorded request, prepared for another submission."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.job.prepare import Prepared, SubmitMode, settle
from hpclaunch.job.record import JobRecord
from hpclaunch.plan.request import JobRequest, Setting


def repeat(record: JobRecord, exclude: tuple[str, ...], mode: SubmitMode) -> Prepared:
    """Return the job's request without these nodes; it runs in the folder of the first attempt.

    Dependencies on other jobs (``--after``) are dropped. The site's profile is read again.
    Raises BadInputError where the recorded request cannot be used.
    """
    try:
        request = msgspec.convert(record.request, JobRequest)
    except msgspec.ValidationError as error:
        raise BadInputError(
            f"{record.folder}/record.json: its request cannot be used: {error}", "submit the job as a new one"
        ) from None
    left_out = tuple(dict.fromkeys((*request.exclude, *exclude)))
    request = replace(request, exclude=left_out, after=(), after_any=False)
    prepared = settle(
        request, _settings(request, record.id, exclude), replace(mode, host=record.host), record.workdir
    )
    return replace(prepared, resubmit_of=record.id)


def _settings(request: JobRequest, job_id: str, exclude: tuple[str, ...]) -> tuple[Setting, ...]:
    """Return the settings of the request, each with the job that it comes from."""
    origin = f"job {job_id}"
    words = ("mnist", *request.command.argv) if request.command.bundled else request.command.argv
    rows = {"command": " ".join(words)}
    for name in JobRequest.__struct_fields__:
        value = getattr(request, name)
        if name != "command" and value not in (None, (), {}):
            shown = ",".join(value) if isinstance(value, tuple) else str(value)
            rows[name.replace("_", "-")] = shown
    return tuple(
        Setting(
            name=name,
            value=value,
            origin=f"{origin}, --exclude-bad-nodes" if name == "exclude" and exclude else origin,
        )
        for name, value in rows.items()
    )
