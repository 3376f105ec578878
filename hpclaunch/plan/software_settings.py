"""The software environment of a job from all its sources: the options go into ``environment:``. Pure.

An option goes over ``environment:`` of the job file or of the user's configuration, and that goes over the
profile's. Modules and binds of options are added to those of ``environment:``; other options replace parts.
"""

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.site.job_environment import Environment, JobContainer
from hpclaunch.site.schema import SiteProfile

_BIND_VARIABLES = ("SINGULARITY_BIND", "APPTAINER_BIND")
_OPTIONS = {
    "container": "container.image",
    "container_runtime": "container.runtime",
    "container_bind": "container.binds",
    "venv": "venv",
    "conda": "conda",
    "module": "modules",
}
"""Setting -> the part of ``environment:`` that it sets, or adds to where it is a list."""


def with_software(
    request: JobRequest, settings: tuple[Setting, ...], profile: SiteProfile
) -> tuple[JobRequest, tuple[Setting, ...]]:
    """Return the request with all of its software in ``environment``, and its settings part by part.

    Raises BadInputError for two Pythons, binds without a container, and a variable that would replace the
    binds.
    """
    if request.venv is not None and request.conda is not None:
        # A venv on top of a conda environment is stated as such, in ``environment:``.
        raise BadInputError(
            f"--venv {request.venv} and --conda {request.conda}: a job has one Python",
            "leave one out; a venv that was made with this conda environment goes with it into environment:"
            " of a job file",
        )
    origins = {setting.name.replace("-", "_"): setting.origin for setting in settings}
    base, origin = request.environment, origins.get("environment", "the request")
    if base is None:
        base, origin = profile.environment, f"site profile {profile.name}"
    environment = base or Environment()
    came_from = dict.fromkeys(_parts(environment), origin)
    given = {name: value for name in _OPTIONS if (value := getattr(request, name)) not in (None, ())}
    for name, value in given.items():
        if name in ("container_runtime", "container_bind") and environment.container is None:
            first = value if isinstance(value, str) else value[0]
            option = f"--{name.replace('_', '-')} {first}"
            raise BadInputError(f"{option}: the job has no container", "add --container IMAGE")
        part = "container.venv" if name == "venv" and environment.container else _OPTIONS[name]
        environment = _with_part(environment, part, value)
        option_origin, before = origins.get(name, "the request"), came_from.get(part)
        adds = isinstance(value, tuple) and before is not None
        came_from[part] = f"{before}, then {option_origin}" if adds else option_origin
    if environment.container and (
        own := next((name for name in _BIND_VARIABLES if name in request.env), None)
    ):
        raise BadInputError(
            f"env {own}: it would replace what the site and the job bind into the container",
            "use --container-bind SRC[:DEST], which adds to it",
        )
    values = _parts(environment)
    stated = (
        Setting(name=f"environment.{part}", value=values[part], origin=o) for part, o in came_from.items()
    )
    moved: dict[str, Any] = {name: () if isinstance(given.get(name), tuple) else None for name in given}
    rest = (each for each in settings if each.name.replace("-", "_") not in {"environment", *_OPTIONS})
    request = replace(request, environment=environment if base or given else None, **moved)
    return request, (*rest, *stated)


def _with_part(environment: Environment, part: str, value: str | tuple[str, ...]) -> Environment:
    """Return the environment with a part; a list goes behind the one that is there."""
    above, _, name = part.rpartition(".")
    holder = (environment.container or JobContainer(image="")) if above else environment
    whole = (*getattr(holder, name), *value) if isinstance(value, tuple) else value
    changed: dict[str, Any] = {name: whole}
    if above:
        changed = {above: replace(holder, **changed)}
    return replace(environment, **changed)


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
