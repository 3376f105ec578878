import os
import subprocess
import sys


def thread_error():
    raise RuntimeError("FATAL: provoked in a thread, the main thread must go on")


def child_segfault():
    rc = subprocess.run([sys.executable, "-X", "faulthandler", "-c",
                         "import ctypes; ctypes.string_at(0)"]).returncode
    print(f"child ended by signal {-rc} (Segmentation fault), as it should", file=sys.stderr, flush=True)


def disk_full():
    try:
        with open("/dev/full", "w") as f:
            f.write("x")
    except OSError as e:
        print(f"ERROR {e!r} handled in pid {os.getpid()}", file=sys.stderr)


class Leaky:
    def __del__(self):
        raise ValueError("provoked in __del__")


def del_error():
    Leaky()


ALL = [("thread", thread_error), ("segfault", child_segfault), ("disk", disk_full), ("del", del_error)]
