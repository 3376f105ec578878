"""Turn station CSV text into compressed blocks; worker processes may crash and are retried."""
import multiprocessing
import os
import zlib


def compress(job):
    number, attempt, text = job
    if number == 3 and attempt == 0:
        os.abort()
    if number == 5 and attempt == 0:
        raise PermissionError(13, "Permission denied", "/archive/block-5.z")
    return zlib.compress(text.encode())


def _child(job, pipe):
    pipe.send_bytes(compress(job))


def block(number, text, complain, tries=3):
    for attempt in range(tries):
        here, there = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.Process(target=_child, args=((number, attempt, text), there))
        child.start()
        there.close()
        try:
            data = here.recv_bytes()
        except EOFError:
            child.join()
            complain(f"FATAL: worker for block {number} died with exit code {child.exitcode}, try {attempt + 1} of {tries}")
            continue
        child.join()
        return data
    raise RuntimeError(f"block {number} cannot be written")
