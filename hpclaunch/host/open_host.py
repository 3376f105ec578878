"""The host of a name: this machine without a name, another machine over ssh with one."""

from collections.abc import Iterator
from contextlib import contextmanager

from hpclaunch.host.host_interface import Host
from hpclaunch.host.this_machine import LocalHost


@contextmanager
def open_host(name: str | None) -> Iterator[Host]:
    """Yield this machine for None, else ``[user@]host[:port]`` over one ssh connection.

    Raises RefusedError where the host cannot be reached, its key is unknown or changed, or it refuses.
    """
    if name is None:
        yield LocalHost()
        return
    from hpclaunch.host.ssh import connect  # few commands leave this machine

    with connect(name) as host:
        yield host
