import array
import logging
import os
import random

log = logging.getLogger("prep.gathers")


class SpillError(RuntimeError):
    pass


class GatherWriter:
    def __init__(self, path):
        self.path = path
        if os.path.dirname(path) != "/dev":
            os.makedirs(os.path.dirname(path), exist_ok=True)
        self.fh = open(path, "wb")
        self.n = 0

    def add(self, trace):
        try:
            self.fh.write(trace.tobytes())
            self.fh.flush()
        except OSError as exc:
            raise SpillError(f"gather {self.n} of {self.path} not written") from exc
        self.n += 1


def traces(count, samples, seed):
    rnd = random.Random(seed)
    for i in range(count):
        if i % 19 == 4:
            log.error("trace %d: header checksum failed, trace dropped", i)
            continue
        yield array.array("f", (rnd.gauss(0, 1) for _ in range(samples)))
