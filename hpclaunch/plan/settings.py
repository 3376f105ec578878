"""Settings of a job from all their sources, merged, each with its origin.

Command line > job file > user config for the site > user config > centre config > defaults. ``env`` merges
name by name and ``directives`` add up; everything else is replaced by the higher source.
"""

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.plan.program import python_target
from hpclaunch.plan.request import Command, JobRequest, Setting
from hpclaunch.plan.script_commands import inner_words, shell_target
from hpclaunch.plan.settings_table import rows

_ADD_UP = ("directives", "env")

if TYPE_CHECKING:

    class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
        """The settings of a JobRequest from one source, each None where it sets nothing."""

        def __init__(self, **settings: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

else:
    _TYPES = {**JobRequest.__annotations__, "command": tuple[str, ...]}
    JobSettings = msgspec.defstruct(
        "JobSettings",
        [
            (row.name, _TYPES[row.name], row.default)
            if row.name in _ADD_UP
            else (row.name, _TYPES[row.name] | None, None)
            for row in rows()
        ],
        namespace={
            "__doc__": "What a job file (``--file job.yaml``) may hold, or another source of settings."
        },
        module=__name__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


class UserConfig(JobSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``$XDG_CONFIG_HOME/hpclaunch/config.yaml``: settings for every job, and for the jobs of one site."""

    sites: dict[str, JobSettings] = {}  # noqa: RUF012 (a struct copies its defaults)


ANY_VALUE = "*"
"""The value in `CentreConfig.refused` that stands for all."""


class CentreConfig(UserConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``config.yaml`` in a centre's folder: settings for all of its users, and what it refuses."""

    groups: dict[str, JobSettings] = {}  # noqa: RUF012
    projects: dict[str, JobSettings] = {}  # noqa: RUF012
    refused: dict[str, dict[str, str]] = {}  # noqa: RUF012


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """One source of settings."""

    origin: str
    settings: JobSettings
    is_program: bool = False
    is_file: bool = False


def highest(layers: list[Layer], name: str) -> Layer | None:
    """Return the first layer that has a value for this setting."""
    return next((layer for layer in layers if getattr(layer.settings, name) is not None), None)


def merge(layers: list[Layer], site: str, site_origin: str) -> tuple[JobRequest, tuple[Setting, ...]]:
    """Return the request, and each setting with its origin; ``site`` is resolved. Raises BadInputError."""
    values: dict[str, Any] = {}
    origins: list[Setting] = [Setting(name="site", value=site, origin=site_origin)]
    for row in rows():
        if row.name in ("site", "command", *_ADD_UP):
            continue
        if layer := highest(layers, row.name):
            value, origin = getattr(layer.settings, row.name), layer.origin
        elif row.computed or row.default_text in ("", "no"):
            continue
        else:
            value, origin = row.default, "default"
        values[row.name] = value
        origins.append(setting_of(row.name, value, origin))
    command, command_origin = _command(layers)
    shown = ("mnist", *command.argv) if command.bundled else command.argv
    origins.append(setting_of("command", " ".join(shown), command_origin))
    if "name" not in values:
        word = "mnist" if command.bundled else _program_name(command.argv)
        values["name"] = re.sub(r"[^A-Za-z0-9._+-]+", "-", word).strip("-.")[:64] or "job"
        origins.append(setting_of("name", values["name"], "computed: after the command"))
    request = JobRequest(
        site=site,
        command=command,
        directives=_directives(layers, origins),
        env=_env(layers, origins),
        **values,
    )
    return request, tuple(origins)


def setting_of(name: str, value: object, origin: str) -> Setting:
    """Return a setting as ``--explain`` shows it, from its key and value."""
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    if isinstance(value, bool):
        text = "yes" if value else "no"
    shown = name if name.startswith("env ") else name.replace("_", "-")
    return Setting(name=shown, value=text, origin=origin)


def _command(layers: list[Layer]) -> tuple[Command, str]:
    for layer in layers:
        if words := layer.settings.command:
            if words[0] == "mnist" and not layer.is_program:
                return Command(argv=words[1:], bundled=True), layer.origin
            return Command(argv=words), layer.origin
    raise BadInputError.case("command: none")


def _program_name(argv: tuple[str, ...]) -> str:
    word = PurePath(inner_words(argv)[0]).name
    if target := python_target(argv):
        module = (target.module or "").rpartition(".")[2]
        return PurePath(target.file).stem if target.file else module or word
    script = shell_target(argv)
    return PurePath(script.file).stem if script and script.file else word


def _directives(layers: list[Layer], origins: list[Setting]) -> tuple[str, ...]:
    lines: list[str] = []
    for layer in reversed(layers):
        lines += layer.settings.directives
        origins += [setting_of("directive", text, layer.origin) for text in layer.settings.directives]
    return tuple(lines)


def _env(layers: list[Layer], origins: list[Setting]) -> dict[str, str]:
    merged: dict[str, str] = {}
    came_from: dict[str, str] = {}
    for layer in reversed(layers):
        merged.update(layer.settings.env)
        came_from.update(dict.fromkeys(layer.settings.env, layer.origin))
    origins += [setting_of(f"env {name}", value, came_from[name]) for name, value in merged.items()]
    return merged


def job_file_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of a job file, for editors: ``submit`` checks the rest."""
    definitions = msgspec.json.schema(JobSettings)["$defs"]
    properties = definitions.pop("JobSettings")["properties"]
    for row in rows():
        properties[row.name].pop("default", None)  # of the file; that of the setting is in its help
        properties[row.name]["description"] = " ".join(row.help.split())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://json.schemastore.org/hpclaunch-job.json",
        "title": "hpclaunch job file",
        "description": "The settings of one job, which hpclaunch submit --file reads.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "$defs": definitions,
    }
