"""The output of a job array: each job's log whole when it has ended, not the lines of all mixed."""

from __future__ import annotations

from collections.abc import Callable

from hpclaunch.host.host_interface import Host
from hpclaunch.job.record import JobRecord


class ArrayLogReader:
    """Passes the logs on, each below a line with its index; see LogReader."""

    def __init__(self, host: Host, record: JobRecord, on_output: Callable[[bytes], None] | None) -> None:
        self._host, self._folder, self._on_output = host, record.folder, on_output
        self._left = sorted(record.array)

    def drain(self, late_s: float = 0.0, *, over: bool = False) -> None:
        """Pass on the logs of the jobs that have ended since; ``over``: all that are left."""
        if self._on_output is None:
            return
        statuses = {i: f"{self._folder}/{i}/exit_status" for i in self._left}
        ended = self._host.read_files(list(statuses.values())) if statuses and not over else {}
        for index, path in statuses.items():
            if over or path in ended:
                self._left.remove(index)
                self._show(f"job {index}", f"{self._folder}/{index}/out.log")
        if over:
            self._show("the array", f"{self._folder}/out.log")

    def _show(self, title: str, path: str) -> None:
        assert self._on_output is not None  # noqa: S101
        offset = 0
        while data := self._host.tail(path, offset):
            if not offset:
                self._on_output(f"==> {title} <==\n".encode())
            offset += len(data)
            self._on_output(data)
