"""What the tests that connect to a server share: a configuration, and a login that asks nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hpclaunch.host.ssh import connect


def configure(home: Path, *blocks: str) -> None:
    (home / ".ssh" / "config").write_text("\n".join(blocks))


def never(prompt: str, echo: bool) -> str:
    raise AssertionError(f"nothing was to be asked: {prompt}")


def works(destination: str, ask: Callable[[str, bool], str] = never) -> bool:
    with connect(destination, ask=ask) as host:
        return host.run(["echo", "works"]).stdout == "works\n"
