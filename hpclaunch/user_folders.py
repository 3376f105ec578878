"""The user's folders of hpclaunch: configuration, state and cache, by the XDG base directory specification.

https://specifications.freedesktop.org/basedir-spec/latest/: a variable whose value is not an absolute path
is ignored. None of the folders is made here. All functions raise RuntimeError for a user without a home.
"""

import os
from pathlib import Path


def user_config_folder() -> Path:
    """Return ``$XDG_CONFIG_HOME/hpclaunch``, by default ``~/.config/hpclaunch``."""
    return _folder("XDG_CONFIG_HOME", ".config")


def user_state_folder() -> Path:
    """Return ``$XDG_STATE_HOME/hpclaunch``, by default ``~/.local/state/hpclaunch``."""
    return _folder("XDG_STATE_HOME", ".local/state")


def user_cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/hpclaunch``, by default ``~/.cache/hpclaunch``."""
    return _folder("XDG_CACHE_HOME", ".cache")


def _folder(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    return (Path(value) if os.path.isabs(value) else Path.home() / default) / "hpclaunch"
