import threading

import torch


class Feed:
    """A cache and an index, each with a lock of its own."""

    def __init__(self, rank):
        self.rank = rank
        self.cache, self.index = threading.Lock(), threading.Lock()
        self.held = threading.Event()

    def refill(self):
        with self.index:
            self.held.set()
            with self.cache:
                pass

    def next(self, step):
        with self.cache:
            if step == 4 and self.rank == 2:          # its cache runs empty
                threading.Thread(target=self.refill, daemon=True).start()
                self.held.wait()
            if not self.index.acquire(timeout=24):
                raise RuntimeError("feed is stuck")
            try:
                return torch.full((64,), float(step + self.rank))
            finally:
                self.index.release()
