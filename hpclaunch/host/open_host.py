"""The host of a name: this machine without a name, another machine over ssh with one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hpclaunch.host.host_interface import Host
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.package_data import note_text


@contextmanager
def open_host(name: str | None) -> Iterator[Host]:
    """Yield this machine for None, else ``[user@]host[:port]`` over one ssh connection.

    Raises RefusedError where the host cannot be reached, its key is unknown or changed, or it refuses.
    """
    if name is None:
        yield LocalHost()
        return
    import shutil  # few commands leave this machine

    from hpclaunch.host.ssh import connect

    if shutil.which("ssh") is None:
        print(f"hpclaunch: {note_text('ssh: no program')}", file=sys.stderr)
    with connect(name) as host:
        yield host
