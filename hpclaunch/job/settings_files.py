"""Settings of a job from its files: the job file and the user's configuration."""

from pathlib import Path
from typing import TypeVar

import msgspec

from hpclaunch.plan.settings import JobSettings, Layer, UserConfig, highest
from hpclaunch.user_folders import user_config_folder

_T = TypeVar("_T", bound=msgspec.Struct)


def config_path() -> Path:
    """Return the path of the user's config; the file need not exist."""
    return user_config_folder() / "config.yaml"


def read_config() -> UserConfig:
    """Read the user's config; without the file it is empty. Raises BadInputError."""
    path = config_path()
    return _read(path, UserConfig) if path.exists() else UserConfig()


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
    layers = [
        Layer(origin="command line", settings=command_line, is_program=is_program, is_file=is_file),
    ]
    if file is not None:
        layers.append(Layer(origin=f"job file {file}", settings=_read(file, JobSettings)))
    config = read_config()
    origin = f"user config {config_path()}"
    named = highest(layers, "site")
    site = named.settings.site if named else config.site
    if site in config.sites:
        layers.append(Layer(origin=f"{origin}, sites.{site}", settings=config.sites[site]))
    layers.append(Layer(origin=origin, settings=config))
    return layers
