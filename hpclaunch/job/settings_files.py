"""Settings of a job from its files: the job file, the user's configuration and that of the centre."""

import grp
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.folders import centre_files, centre_folders, user_config_folder
from hpclaunch.plan.request import NOT_GIVEN, Problem, Setting
from hpclaunch.plan.settings import ANY_VALUE, CentreConfig, JobSettings, Layer, UserConfig, highest

_T = TypeVar("_T", bound=msgspec.Struct)


def config_path() -> Path:
    """Return the path of the user's config; the file need not exist."""
    return user_config_folder() / "config.yaml"


def read_config() -> UserConfig:
    """Read the user's config; without the file it is empty. Raises BadInputError."""
    path = config_path()
    return _read(path, UserConfig) if path.exists() and not _says_nothing(path) else UserConfig()


def _says_nothing(path: Path) -> bool:
    """Whether a file is empty or has only comments: defaults that are still to come."""
    return path.is_file() and not re.search(rb"^\s*[^#\s]", path.read_bytes(), re.MULTILINE)


def _read(path: Path, wanted: type[_T]) -> _T:
    from hpclaunch.site.validate import to_struct
    from hpclaunch.site.yaml_tree import read_tree  # loads YAML, which many jobs do not need

    return to_struct(read_tree(path), wanted)


def read_layers(
    command_line: JobSettings, file: Path | None, *, is_program: bool = False, is_file: bool = False
) -> list[Layer]:
    """Return all sources of settings, the highest first. Raises BadInputError for a bad file.

    ``is_program`` and ``is_file``: of the command of the command line, see `Layer`.
    """
    layers = [Layer(origin="command line", settings=command_line, is_program=is_program, is_file=is_file)]
    if file is not None:
        layers.append(Layer(origin=f"job file {file}", settings=_read(file, JobSettings)))
    config = read_config()
    origin = f"user config {config_path()}"
    of_centre = list(_centre_configs())
    named = (each.settings.site for each in layers)
    site = next(filter(None, (*named, config.site, *(each.site for _, each in of_centre))), None)
    if site in config.sites:
        layers.append(Layer(origin=f"{origin}, sites.{site}", settings=config.sites[site]))
    layers.append(Layer(origin=origin, settings=config))
    for path, each in of_centre:
        layers += _layers_of(path, each, layers, site)
    return layers


def sites_without_profile() -> Iterator[str]:
    """Yield notes about misspelt names of sites in the configurations, whose settings nothing reads."""
    for path, config in ((config_path(), read_config()), *_centre_configs()):
        if not config.sites:
            continue
        from difflib import get_close_matches

        from hpclaunch.site.load_profile import site_names

        for name in config.sites.keys() - site_names().keys():
            for near in get_close_matches(name, site_names(), n=1):
                yield f"{path}: sites.{name}: no profile has this name; did you mean {near}?"


def refused_by_centre(settings: Iterable[Setting]) -> Iterator[Problem]:
    """Yield what a centre refuses of the settings that a user gave, with its own words.

    It is help, not security: anybody can submit without hpclaunch. Raises BadInputError for a bad file.
    """
    given = {each.name.replace("-", "_"): each for each in settings if not each.origin.startswith(NOT_GIVEN)}
    for path, config in _centre_configs():
        for name, rule in config.refused.items():
            if (setting := given.get(name)) is None:
                continue
            if text := rule.get(setting.value or "", rule.get(ANY_VALUE)):
                message = f"{setting.name} {setting.value} ({setting.origin}) is refused by {path}: {text}"
                yield Problem(message=message, hint=None)


def _centre_configs() -> Iterator[tuple[Path, CentreConfig]]:
    for folder in centre_folders():
        for path in centre_files(folder, "config.yaml"):
            config = CentreConfig() if _says_nothing(path) else _read(path, CentreConfig)
            for name in config.refused.keys() - set(known := JobSettings.__struct_fields__):
                from hpclaunch.site.validate import did_you_mean
                from hpclaunch.site.yaml_tree import read_tree

                where = read_tree(path).at(("refused", name)).where
                raise BadInputError(f"{where}: refused.{name}: no setting", did_you_mean(name, known))
            yield path, config


def _layers_of(path: Path, config: CentreConfig, above: list[Layer], site: str | None) -> Iterator[Layer]:
    """Yield the layers of a centre's file: of the project, of the user's groups, of the site, of all jobs."""
    origin = f"centre config {path}"
    at_site = {name: settings for name, settings in config.sites.items() if name == site}
    groups = {name: config.groups[name] for name in _unix_groups() if name in config.groups}
    rest = [
        *(Layer(origin=f"{origin}, groups.{name}", settings=each) for name, each in groups.items()),
        *(Layer(origin=f"{origin}, sites.{name}", settings=each) for name, each in at_site.items()),
        Layer(origin=origin, settings=config),
    ]
    account = highest([*above, *rest], "account")
    if account and (project := config.projects.get(account.settings.account)):
        yield Layer(origin=f"{origin}, projects.{account.settings.account}", settings=project)
    yield from rest


def _unix_groups() -> Iterator[str]:
    """Yield the names of this process's groups, its own first; those without a name are left out."""
    for number in dict.fromkeys((os.getegid(), *os.getgroups())):
        with suppress(KeyError):
            yield grp.getgrgid(number).gr_name
