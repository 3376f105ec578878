"""The user's folders, by the XDG base directory specification."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpclaunch.folders import user_cache_folder, user_config_folder, user_state_folder
from hpclaunch.job.settings_files import config_path


@pytest.mark.parametrize(
    ("folder", "variable", "default"),
    [
        (user_config_folder, "XDG_CONFIG_HOME", ".config"),
        (user_state_folder, "XDG_STATE_HOME", ".local/state"),
        (user_cache_folder, "XDG_CACHE_HOME", ".cache"),
    ],
)
def test_only_an_absolute_value_is_followed(
    folder: Callable[[], Path], variable: str, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv(variable, "/elsewhere")
    assert folder() == Path("/elsewhere/hpclaunch")
    for ignored in ("", "relative", "~/config", "./x"):
        monkeypatch.setenv(variable, ignored)
        assert folder() == Path(f"/home/me/{default}/hpclaunch")
    monkeypatch.delenv(variable)
    assert folder() == Path(f"/home/me/{default}/hpclaunch")


def test_the_configuration_file_follows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert config_path() == Path("/home/me/.config/hpclaunch/config.yaml")
