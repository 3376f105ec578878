"""A recorded request, prepared for another submission."""

import os

import msgspec
from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.job.prepare import Prepared, SubmitMode, settle
from hpclaunch.job.record import JobRecord
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.plan.settings import JobSettings, setting_of
from hpclaunch.site.load_profile import is_path, site_reference

_ADD_UP = ("command", "env", "directives")
_NO_CHANGES = JobSettings()


def repeat(
    record: JobRecord, exclude: tuple[str, ...], mode: SubmitMode, changes: JobSettings = _NO_CHANGES
) -> Prepared:
    """Return the job's request without these nodes; it runs in the folder of the first attempt.

    ``changes``: settings in place of the recorded ones; variables and directives are added to them.
    Dependencies on other jobs (``--after``) and ``--begin`` are dropped. The site's profile is read again.
    Raises BadInputError where the recorded request cannot be used.
    """
    try:
        request = msgspec.convert(record.request, JobRequest)
    except msgspec.ValidationError as error:
        raise BadInputError.case("record: request", record=record, error=error) from None
    left_out = tuple(dict.fromkeys((*request.exclude, *exclude)))
    site = request.site if record.host else os.path.join(record.workdir, request.site)  # of older records
    request = replace(request, exclude=left_out, after=(), after_any=False, begin=None)
    if is_path(request.site):
        request = replace(request, site=site)
    settings = _settings(request, record.id, exclude)
    request, settings = _changed(request, settings, changes)
    prepared = settle(request, settings, replace(mode, host=record.host), record.workdir)
    return replace(prepared, resubmit_of=record.id)


def _changed(
    request: JobRequest, settings: tuple[Setting, ...], changes: JobSettings
) -> tuple[JobRequest, tuple[Setting, ...]]:
    new = {name: getattr(changes, name) for name in changes.__struct_fields__ if name not in _ADD_UP}
    new = {name: value for name, value in new.items() if value is not None}
    if "site" in new:
        new["site"] = site_reference(new["site"])
    if "exclude" in new:
        new["exclude"] = tuple(dict.fromkeys((*request.exclude, *new["exclude"])))
    told = dict(new)
    if changes.env:
        new["env"] = {**request.env, **changes.env}
        told |= {f"env {name}": value for name, value in changes.env.items()}
    if changes.directives:
        new["directives"] = (*request.directives, *changes.directives)
        told["directive"] = changes.directives
    names = {name.replace("_", "-") if not name.startswith("env ") else name for name in told}
    kept = tuple(setting for setting in settings if setting.name not in names)
    given = (setting_of(name, value, "command line") for name, value in told.items())
    return replace(request, **new), (*kept, *given)


def _settings(request: JobRequest, job_id: str, exclude: tuple[str, ...]) -> tuple[Setting, ...]:
    origin = f"job {job_id}"
    words = ("mnist", *request.command.argv) if request.command.bundled else request.command.argv
    rows: dict[str, object] = {"command": " ".join(words)}
    for name in JobRequest.__struct_fields__:
        value = getattr(request, name)
        if name == "env":
            rows |= {f"env {variable}": text for variable, text in value.items()}
        elif name != "command" and value not in (None, (), {}):
            rows[name] = value
    more = {"exclude": ", --exclude-bad-nodes"} if exclude else {}
    return tuple(setting_of(name, value, origin + more.get(name, "")) for name, value in rows.items())
