"""Settings of a job from its files: the job file and the user's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hpclaunch.plan.settings import JobSettings, Layer, UserConfig
from hpclaunch.user_folders import user_config_folder

_T = TypeVar("_T", bound=msgspec.Struct)


def config_path() -> Path:
    """Return where the user's config is, whether it exists or not."""
    return user_config_folder() / "config.yaml"


def read_config() -> UserConfig:
    """Read the user's config; no file is an empty one. Raises BadInputError."""
    path = config_path()
    return _read(path, UserConfig) if path.exists() else UserConfig()


def _read(path: Path, wanted: type[_T]) -> _T:
    from hpclaunch.site.validate import to_struct
    from hpclaunch.site.yaml_tree import read_tree  # YAML, which many jobs do without

    return to_struct(read_tree(path), wanted)


def read_layers(command_line: JobSettings, file: Path | None) -> list[Layer]:
    """Return all sources but the per-site ones, the highest first. Raises BadInputError for a bad file."""
    layers = [Layer(origin="command line", settings=command_line)]
    if file is not None:
        layers.append(Layer(origin=f"job file {file}", settings=_read(file, JobSettings)))
    config = read_config()
    origin = f"user config {config_path()}"
    site = _first(layers, "site") or config.site
    if site in config.sites:
        layers.append(Layer(origin=f"{origin}, sites.{site}", settings=config.sites[site]))
    layers.append(Layer(origin=origin, settings=config))
    return layers


def _first(layers: list[Layer], name: str) -> Any:
    return next((v for layer in layers if (v := getattr(layer.settings, name)) is not None), None)
