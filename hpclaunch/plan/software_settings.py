"""The software environment of a job from all its sources: the options go into ``environment:``. Pure.

An option goes over ``environment:`` of the job file or of the user's configuration, and that goes over the
profile's. Modules and binds of options are added to those of ``environment:``; other options replace parts.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.site.job_environment import Environment, JobContainer
from hpclaunch.site.schema import SiteProfile

_BIND_VARIABLES = ("SINGULARITY_BIND", "APPTAINER_BIND")
_OPTIONS = ("container", "container_runtime", "container_bind", "venv", "conda", "module")


def with_software(
    request: JobRequest, settings: tuple[Setting, ...], profile: SiteProfile
) -> tuple[JobRequest, tuple[Setting, ...]]:
    """Return the request with all of its software in ``environment``, and its settings part by part.

    Raises BadInputError for two Pythons, binds without a container, and a variable that would replace the
    binds.
    """
    _check_pythons(request)
    origins = {setting.name.replace("-", "_"): setting.origin for setting in settings}
    named = {name: origins.get(name, "the request") for name in _OPTIONS}
    found = _Software(request.environment, origins.get("environment", "the request"))
    if request.environment is None:
        found = _Software(profile.environment, f"site profile {profile.name}")

    if request.container is not None:
        found.put("container", "image", request.container, named["container"])
    contained = found.environment.container is not None
    if contained and (own := next((name for name in _BIND_VARIABLES if name in request.env), None)):
        raise BadInputError(
            f"env {own}: it would replace what the site and the job bind into the container",
            "use --container-bind SRC[:DEST], which adds to it",
        )
    if request.container_runtime is not None:
        _need_container("--container-runtime", request.container_runtime, found)
        found.put("container", "runtime", request.container_runtime, named["container_runtime"])
    if request.container_bind:
        _need_container("--container-bind", request.container_bind[0], found)
        found.add("container", "binds", request.container_bind, named["container_bind"])
    if request.venv is not None:
        found.put("container" if contained else "", "venv", request.venv, named["venv"])
    if request.conda is not None:
        found.put("", "conda", request.conda, named["conda"])
    if request.module:
        found.add("", "modules", request.module, named["module"])

    rest = (
        setting for setting in settings if setting.name.replace("-", "_") not in {"environment", *_OPTIONS}
    )
    environment = found.environment if found.given else None
    moved: dict[str, Any] = {
        "container": None,
        "container_runtime": None,
        "container_bind": (),
        "venv": None,
        "conda": None,
        "module": (),
    }
    return replace(request, environment=environment, **moved), (*rest, *found.settings())


def _check_pythons(request: JobRequest) -> None:
    """Refuse two Pythons. A venv on top of a conda environment is stated as such, in ``environment:``."""
    if request.venv is not None and request.conda is not None:
        raise BadInputError(
            f"--venv {request.venv} and --conda {request.conda}: a job has one Python",
            "leave one out; a venv that was made with this conda environment goes with it into environment:"
            " of a job file",
        )


def _need_container(option: str, value: str, found: _Software) -> None:
    if found.environment.container is None:
        raise BadInputError(f"{option} {value}: the job has no container", "add --container IMAGE")


def software_files(environment: Environment | None) -> tuple[str, ...]:
    """Return the files without which the environment does not work: the image, and the venv's activate.

    Only those whose paths are plain: not addresses, names of CSCS' definitions, or paths with variables.
    """
    if environment is None:
        return ()
    paths = [f"{environment.venv}/bin/activate"] if environment.venv else []
    if environment.container and re.search(
        r"^\.{0,2}/|\.(sif|sqsh|squashfs|toml)$", environment.container.image
    ):
        paths.append(environment.container.image)
    return tuple(path for path in paths if not re.search(r"[$~#]|://", path))


class _Software:
    """An environment, and the origin of each part that it states."""

    def __init__(self, base: Environment | None, origin: str) -> None:
        self.environment = base or Environment()
        self.given = base is not None
        self._origins = dict.fromkeys(_parts(self.environment), origin)

    def put(self, above: str, name: str, value: object, origin: str) -> None:
        """Set a part; ``above``: empty, or ``container`` for a part of it."""
        self.given = True
        self._origins[f"{above}.{name}".strip(".")] = origin
        if above:
            inner = self.environment.container or JobContainer(image="")
            value, name = replace(inner, **{name: value}), above
        self.environment = replace(self.environment, **{name: value})

    def add(self, above: str, name: str, values: tuple[str, ...], origin: str) -> None:
        """Add to a part that is a list."""
        before = self._origins.get(f"{above}.{name}".strip("."))
        holder = self.environment.container if above else self.environment
        both = origin if before is None else f"{before}, then {origin}"
        self.put(above, name, (*getattr(holder, name), *values), both)

    def settings(self) -> tuple[Setting, ...]:
        """Return each part that is stated, with its origin."""
        values = _parts(self.environment)
        return tuple(
            Setting(name=f"environment.{name}", value=values[name], origin=origin)
            for name, origin in self._origins.items()
        )


def _parts(environment: Environment) -> dict[str, str]:
    """Return what an environment states, by the keys of a file: ``container.image`` -> text."""

    def parts(tree: dict[str, Any], above: str) -> dict[str, str]:
        found = dict[str, str]()
        for name, value in tree.items():
            if isinstance(value, dict):
                found |= parts(value, f"{above}{name}.")
            elif isinstance(value, list | tuple):
                found[above + name] = ",".join(map(str, value))
            else:
                found[above + name] = {True: "yes", False: "no"}.get(value, str(value))
        return found

    return parts(msgspec.to_builtins(environment), "")
