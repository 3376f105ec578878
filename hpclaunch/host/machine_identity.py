"""Which machine this is, so that a process id in a record is not taken for the same number elsewhere."""

import os
from contextlib import suppress

import msgspec


class MachineIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What must be equal for a process id to mean the same process; empty where it cannot be read.

    Machines that share a home differ in ``boot_id``, as does one machine after a restart. A container shares
    it, and often the host's name, but has its own numbers of processes (man 7 pid_namespaces).
    """

    host: str
    boot_id: str
    """/proc/sys/kernel/random/boot_id (man 5 proc)."""
    pid_namespace: str
    """Target of /proc/self/ns/pid."""

    def sees_processes_of(self, other: "MachineIdentity | None") -> bool:
        """Return whether a process id there is the same process here; False where that is not certain."""
        return other == self and all((self.host, self.boot_id, self.pid_namespace))


def machine_identity() -> MachineIdentity:
    """Return the identity of the machine, or container, that this process runs in."""
    boot_id = pid_namespace = ""
    with suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot_id = file.read().strip()
        pid_namespace = os.readlink("/proc/self/ns/pid")
    return MachineIdentity(host=os.uname().nodename, boot_id=boot_id, pid_namespace=pid_namespace)
