import csv
import logging
import os
import queue
import threading


def file_logger(rank):
    os.makedirs("logs", exist_ok=True)
    log = logging.getLogger("prefetch")
    log.propagate = False
    log.addHandler(logging.FileHandler(f"logs/prefetch_{rank}.log", mode="w"))
    return log


class Prefetcher(threading.Thread):
    """Reads tile after tile ahead of the training loop."""

    def __init__(self, rank):
        super().__init__(daemon=True)
        self.rank = rank
        self.out = queue.Queue(maxsize=2)
        self.log = file_logger(rank)

    def run(self):
        try:
            with open(f"tiles/tiles_{self.rank}.csv") as f:
                for row in csv.DictReader(f):
                    self.out.put([float(row[c]) for c in ("red", "nir", "label")])
            self.out.put(None)
        except Exception:
            self.log.exception("prefetch stopped")
