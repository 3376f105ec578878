import queue
import threading

import torch


class CorruptRecord(ValueError):
    def __init__(self, record, reason):
        super().__init__(f"record {record}: {reason}")


def decode(rank, record, payload: bytes):
    """Two bytes of length, then as many int16 samples."""
    n = int.from_bytes(payload[:2], "little")
    if len(payload) != 2 + 2 * n:
        raise CorruptRecord(record, f"header says {n} samples, found {(len(payload) - 2) / 2:g}")
    return torch.frombuffer(bytearray(payload[2:]), dtype=torch.int16).float() / 32768


class Prefetcher(threading.Thread):
    def __init__(self, rank, records=60):
        super().__init__(name=f"prefetch-{rank}", daemon=True)
        self.rank, self.records = rank, records
        self.out = queue.Queue(maxsize=4)

    def run(self):
        for record in range(self.records):
            samples = torch.randint(-900, 900, (256,), dtype=torch.int16)
            payload = (256).to_bytes(2, "little") + samples.numpy().tobytes()
            if self.rank == 2 and record == 13:
                payload = payload[:-60]         # the file was cut while it was copied
            self.out.put(decode(self.rank, record, payload))

    def get(self):
        return self.out.get(timeout=30)
