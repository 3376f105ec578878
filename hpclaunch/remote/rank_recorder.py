"""Dumps of torch's flight recorder on request, for ``hpclaunch stacks``; ``rank_startup.py`` loads it.

Once the program has made a process group, a thread waits for a request on a pipe and writes the newest
collectives to a file in memory: a rank that waits in a collective has released Python's lock, so the thread
can run. No fault of it may end the program.
"""

# Runs in whatever Python the job has, from 3.8 on.
from __future__ import annotations

import functools
import os
from contextlib import suppress
from typing import Any, Callable  # noqa: UP035  (3.8)


class Recorder:
    """The thread and its file."""

    def __init__(self, unnamed_file: Callable[[str], int]) -> None:
        self.unnamed_file = unnamed_file
        self.process = 0

    def loaded(self, module: Any) -> None:
        """torch.distributed is there: wait for its first process group."""
        os.environ.setdefault(
            "TORCH_FR_BUFFER_SIZE", "2000"
        )  # for NCCL by default; for gloo none (torch 2.13)
        make = getattr(module, "init_process_group", None)
        if make is None:
            return

        @functools.wraps(make)
        def init_process_group(*arguments: Any, **options: Any) -> Any:
            made = make(*arguments, **options)
            with suppress(Exception):  # the program goes on; its stacks still tell
                self.start()
            return made

        module.init_process_group = init_process_group

    def start(self) -> None:
        """Start the thread, once in a process."""
        if self.process == os.getpid():
            return
        self.process = os.getpid()
        import threading

        from torch._C import _distributed_c10d

        names = ("_dump_fr_trace_json", "_dump_nccl_trace_json")  # torch 2.13; 2.5 with NCCL
        dump = next((found for name in names if (found := getattr(_distributed_c10d, name, None))), None)
        if dump is None:
            return
        requests, request = os.pipe()
        file = self.unnamed_file("hpclaunch-recorder")
        os.write(file, f"{self.process} {request}\n".encode())
        served = (requests, file, dump)
        threading.Thread(target=serve, args=served, name="hpclaunch-recorder", daemon=True).start()


def serve(requests: int, file: int, dump: Any) -> None:
    """Write a dump, one line, at each request; who requests it has emptied the file after its first line."""
    while os.read(requests, 1):
        try:
            text = dump()
        except Exception as error:
            text = str(error)
        data = (text if isinstance(text, bytes) else text.encode()).replace(b"\n", b" ") + b"\n"
        while data:
            data = data[os.write(file, data) :]


def actions(unnamed_file: Callable[[str], int]) -> dict[str, Any]:
    """Module of the program -> what follows when it was imported."""
    return {"torch.distributed.distributed_c10d": Recorder(unnamed_file).loaded}
