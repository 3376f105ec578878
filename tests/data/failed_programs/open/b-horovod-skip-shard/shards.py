import struct

import torch

MAGIC = b"SHRD"


class ShardError(Exception):
    pass


class Shard:
    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)

    def batches(self, n):
        for _ in range(n):
            yield torch.randn(8, 8, 8, generator=self.gen), torch.randint(0, 4, (8,), generator=self.gen)


def header(rank, epoch):
    magic = b"\0\0\0\0" if (rank, epoch) == (2, 1) else MAGIC     # a hole in a sparse file
    return struct.pack("<4sii", magic, rank, epoch)


def open_shard(rank, epoch):
    magic, r, e = struct.unpack("<4sii", header(rank, epoch))
    if magic != MAGIC:
        raise ShardError("shard %d.%d has no header (%r)" % (rank, epoch, magic))
    return Shard(100 * r + e)
