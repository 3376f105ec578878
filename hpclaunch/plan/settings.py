"""Settings of a job from all their sources, merged, each with where it came from.

Command line > job file > user config for the site > user config > defaults. ``env`` merges name by name and
``directives`` add up; everything else is replaced by the higher source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Literal, TypeVar

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.plan.request import Command, FrameworkName, JobRequest, Setting
from hpclaunch.site.job_environment import Environment

_T = TypeVar("_T", bound=msgspec.Struct)


class JobSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a job file (``--file job.yaml``) may say: the long options of submit, with underscores."""

    site: str | None = None
    """Name of a site profile, or path of one."""
    command: tuple[str, ...] | None = None
    """Program and arguments that every rank runs, or ``[mnist, ...]`` for the bundled training."""
    name: str | None = None
    nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    gpus_per_task: int | None = None
    cpus_per_task: int | None = None
    threads_per_core: int | None = None
    time: str | None = None
    account: str | None = None
    queue: str | None = None
    """Partition, QOS or queue."""
    mpi: str | None = None
    python: str | None = None
    exclusive: bool | None = None
    binding: Literal["warn", "strict", "off"] | None = None
    framework: FrameworkName | None = None
    zero_stage: int | None = None
    timeline: str | None = None
    max_restarts: int | None = None
    warn_before: str | None = None
    idle_timeout: str | None = None
    after: tuple[str, ...] | None = None
    after_any: bool | None = None
    array: str | None = None
    exclude: tuple[str, ...] | None = None
    check: bool | None = None
    preflight: bool | None = None
    exclude_bad_nodes: bool | None = None
    space: tuple[str, ...] | None = None
    directives: tuple[str, ...] = ()
    env: dict[str, str] = {}
    environment: Environment | None = None
    """Modules, EasyBuild, EESSI, container, virtual environment: see docs/how-to/check-before.md."""


class UserConfig(JobSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``$XDG_CONFIG_HOME/hpclaunch/config.yaml``: settings for every job, and for the jobs of one site."""

    sites: dict[str, JobSettings] = {}
    """Site name -> settings for jobs there, such as the account."""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """One source of settings."""

    origin: str
    settings: JobSettings


_DEFAULTS: Mapping[str, Any] = {
    "threads_per_core": 1,
    "exclusive": True,
    "binding": "warn",
    "max_restarts": 0,
    "warn_before": "2m",
}


def merge(layers: list[Layer], site: str, site_origin: str) -> tuple[JobRequest, tuple[Setting, ...]]:
    """Return the request, and each of its settings with where it came from.

    ``site`` was settled before (it may have been detected). Raises BadInputError without a command.
    """
    values: dict[str, Any] = {}
    origins: list[Setting] = [Setting(name="site", value=site, origin=site_origin)]
    for name in JobSettings.__struct_fields__:
        if name in ("site", "directives", "env", "command"):
            continue
        for layer in layers:
            if (value := getattr(layer.settings, name)) is not None:
                values[name] = value
                origins.append(_setting(name, value, layer.origin))
                break
        else:
            if name in _DEFAULTS:
                values[name] = _DEFAULTS[name]
                origins.append(_setting(name, _DEFAULTS[name], "default"))
    command, command_origin = _command(layers)
    origins.append(_setting("command", " ".join(_shown(command)), command_origin))
    if "name" not in values:
        values["name"] = _usual_name(command)
        origins.append(_setting("name", values["name"], "computed: after the command"))
    request = JobRequest(
        site=site,
        command=command,
        directives=_directives(layers, origins),
        env=_env(layers, origins),
        **values,
    )
    return request, tuple(origins)


def _setting(name: str, value: object, origin: str) -> Setting:
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    return Setting(name=name.replace("_", "-"), value=text, origin=origin)


def _command(layers: list[Layer]) -> tuple[Command, str]:
    for layer in layers:
        if words := layer.settings.command:
            if words[0] == "mnist":
                return Command(argv=words[1:], bundled=True), layer.origin
            return Command(argv=words), layer.origin
    raise BadInputError(
        "nothing to run: no command was given",
        "name the bundled training (hpclaunch submit mnist) or a command (hpclaunch submit -- CMD ARG)",
    )


def _shown(command: Command) -> tuple[str, ...]:
    return ("mnist", *command.argv) if command.bundled else command.argv


def _usual_name(command: Command) -> str:
    word = "mnist" if command.bundled else PurePath(command.argv[0]).name
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", word).strip("-.")[:64] or "job"


def _directives(layers: list[Layer], origins: list[Setting]) -> tuple[str, ...]:
    lines: list[str] = []
    for layer in reversed(layers):
        lines += layer.settings.directives
        origins += [_setting("directive", text, layer.origin) for text in layer.settings.directives]
    return tuple(lines)


def _env(layers: list[Layer], origins: list[Setting]) -> dict[str, str]:
    """Merge the environment variables; secrets are refused, since scripts and records keep what they get."""
    merged: dict[str, str] = {}
    came_from: dict[str, str] = {}
    for layer in reversed(layers):
        merged.update(layer.settings.env)
        came_from.update(dict.fromkeys(layer.settings.env, layer.origin))
    for name in merged:
        if re.search(r"token|secret|passw|api_?key|credential", name, re.IGNORECASE):
            raise BadInputError(
                f"{came_from[name]}: env {name} looks like a secret; scripts and records keep variables",
                f"export {name} in the shell that submits: Slurm hands its environment on to the job",
            )
    origins += [_setting(f"env {name}", value, came_from[name]) for name, value in merged.items()]
    return merged
